"""Observation of a cluster: the watcher, the history, views of it, and waits over it."""
