"""The state of a cluster as plain data: no I/O, no clock, no randomness.

`objects` has the decoded API objects, `cluster` is the state made of them, and the other modules are parts of it.
"""
