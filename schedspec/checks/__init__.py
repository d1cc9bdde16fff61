"""What a Then can ask of a cluster: pure checks over a view, for the expectations of `schedspec.observe.expect`.

The one rule: a check says what was expected and what was seen, never empty; it waits for nothing.
"""
