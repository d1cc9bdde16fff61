"""The waiting jobs: which changes of the state could help each of them, and which of them a cycle tries.

1. `Backlog` (`backlog`) has an entry for each refused job. The state reports every change to it.
2. A cycle reads the backlog through a `BacklogView` (`view`), which skips the jobs that no change could have helped.
   `helped` and `quotas` compare amounts, `lines` groups equal jobs.
3. `cycle_end` makes the `entries` for the next cycle from the refusals of this cycle and their `hints`.
"""
