"""Measure the figures of the project. Each module is a command, for instance `python -m benchmarks.core`."""
