"""Collect feature files as test modules. Only the module `bdd` uses pytest-bdd's private parts."""
