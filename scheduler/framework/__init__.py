"""The framework of actions and plugins: the session of one cycle, its statements, nominations and decisions.

`scheduler.decide` creates a `Session` (`session`) for each cycle. An action takes the next job from `serving_order`,
and changes tasks through a `Statement` only. `plugin` has the base class of plugins, `work` the budget, `decisions` the
result.
"""
