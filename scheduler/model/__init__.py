"""The state of a cluster as plain data: no I/O, no clock, no randomness.

`objects` are the decoded API objects, `cluster` is the state that they form, the other modules are its parts.
"""
