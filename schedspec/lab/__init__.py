"""Answer questions about a cluster that exists.

`simulate` runs a load, `plan` compares two worlds, `why` says why a job waits, `reduce` finds the smallest case that
shows an incident, and `explore` judges random cases. Our scheduler decides in virtual time. For a plan, `twin` lets the
cluster's own scheduler decide.
"""
