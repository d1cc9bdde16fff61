"""Observe a cluster: watch it, keep the history of its objects, and wait for conditions on the history.

`watcher` writes the `history`, and `expect` waits on it. `view` reads facts from one object, `queries` from all
versions. `virtual` replaces API client, watcher and clock in a simulated cluster.
"""
