"""Collect feature files as test modules, and check them before a scenario runs."""
