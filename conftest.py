"""Load the schedspec plugin in every run in this checkout. An installed wheel loads it by its entry point."""

pytest_plugins = ["schedspec.plugin", "pytester"]
