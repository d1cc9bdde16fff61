"""The pytest plugin that runs executable specifications against a live cluster, and the packages below it."""
