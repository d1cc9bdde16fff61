"""`schedspec plan`: show what a change does before it is merged.

`scheduler.plan` computes the immediate effects and the effects on a load. This package has the parts that need a
repository: the two sets of files (`sources`), the team's own scenarios (`rules`), and the known differences of the
scheduler that serves the cluster (`foreign`).
"""
