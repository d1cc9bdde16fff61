"""Observe a cluster: watch it, keep the history of its objects, and wait for conditions on the history."""
