"""`schedspec plan`: what a change does, before it is merged.

The scheduler's own room `scheduler.plan` answers what happens at once and over a load. This room has what needs a
repository: the two sets of files (`sources`), the team's own scenarios (`rules`), and the known differences of the
scheduler that the plan stands for (`foreign`).
"""
