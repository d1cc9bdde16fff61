"""`schedspec simulate`: run a load in virtual time, write a record of each job, and summarize the records.

1. `inputs` reads the cluster (nodes and manifests, or a state) and the load (`trace`, `synthetic`).
2. `runner` drives a `Simulation`; `bookkeeping` turns its outcomes into records and metrics, `monitored` judges them.
3. The records go to the result file as a stream (`records`), the metrics to its last line and to the terminal.
4. `command` is one run, `sweep` many runs at once, and `pages` renders results.
"""
