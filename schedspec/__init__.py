"""The pytest plugin that runs executable specifications against a live cluster, and what it stands on."""
