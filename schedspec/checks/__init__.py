"""Checks for `Then` sentences: pure functions of a view, for the expectations of `schedspec.observe.expect`.

The docstring of a check is the condition that it checks. An outcome's `expected` and `seen` are never empty. A check
never waits.
"""
