"""A whole cluster in virtual time: API server, kubelets, controllers and the live scheduler, in one thread.

The scheduler's own processes run unchanged on an event loop whose clock is virtual (`virtual_loop`), against an API
server in memory (`server`). So what a scenario sees is what it would see live, without the waiting.
"""

from .virtual_cluster import VirtualCluster

__all__ = ["VirtualCluster"]
