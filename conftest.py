"""What every run in this tree gets. An installed wheel brings the plugin by its entry point, under the same name."""

pytest_plugins = ["schedspec.plugin", "pytester"]
