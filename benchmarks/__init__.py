"""The figures of the project, each a command: ``python -m benchmarks.live``, ``python -m benchmarks.core``."""
