"""The shell around the pure core: watch, decide, write.

Code that can fail or wait is in this package, and no code in this package decides what is scheduled.
"""
