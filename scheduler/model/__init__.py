"""What the scheduler knows of a cluster, as plain data: no I/O, no clock, no randomness.

``objects`` are the API's objects as decoded, ``cluster`` is the state they form, the rest are its parts.
"""
