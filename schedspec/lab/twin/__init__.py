"""Ask a scheduler's own program what it would decide on the state of a cluster.

A twin is a control plane of its own (etcd, API server, KWOK) with the objects of the state, and with that program. No
container of the state's pods runs there.

1. `choose` finds the program that decides in the cluster of a state, or our model of it, and runs both worlds.
2. `world` boots a twin for each run, writes the objects (`etcd`), starts the scheduler, and plays what the owners of
   work would do; `decisions` reads what the scheduler decided.
"""

from .choose import Choice, reads_policies
