"""Executable specifications for queue scheduling: a pytest plugin, the command `schedspec`, and the packages below."""
