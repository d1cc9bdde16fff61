"""A whole cluster in virtual time: API server, kubelets, controllers and the live scheduler, in one thread.

The scheduler's own processes run unchanged on an event loop whose clock is virtual (`virtual_cluster`), against an API
server in memory (`server`). A scenario therefore sees what it would see live, but without waiting.
"""

from .virtual_cluster import VirtualCluster
