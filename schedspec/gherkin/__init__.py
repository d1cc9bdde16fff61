"""Feature files as test modules. pytest-bdd's private parts are used in :mod:`.bdd` alone."""
