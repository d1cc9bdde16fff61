"""Ask a scheduler's own program what it would decide on the state of a cluster.

1. `choose` finds the program that decides in the cluster of a state, or our model of it.
2. `decide` runs both worlds of a plan, as often as the scheduler's order varies.
3. `world` is etcd, API server and KWOK with the objects of a state (`objects`, `etcd`), and the scheduler on them;
   `owners` plays what the owners of work would do, and `decisions` reads what the scheduler decided.
"""

from .choose import Choice

__all__ = ["Choice"]
