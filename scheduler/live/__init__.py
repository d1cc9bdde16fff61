"""The shell around the pure core: watch, decide, write.

The one rule: everything that can fail or wait is in here, and nothing in here decides what is scheduled.
"""
