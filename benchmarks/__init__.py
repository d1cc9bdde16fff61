"""Measure speed, memory and evictions. Most modules are commands, for instance `python -m benchmarks.core`."""
