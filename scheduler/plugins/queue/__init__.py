"""The plugins that divide the cluster among queues, and their shared parts. A policy enables one of these plugins.

`capacity`, `proportion` and `capacity_card` are the plugins. Their base class, `plugin`, has the hooks and decides
from `attributes`: what queues hold and request in the cycle.
"""
