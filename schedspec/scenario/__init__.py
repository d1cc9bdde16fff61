"""The lifecycle of a scenario: its objects, templates and clean-up, and the session with its cluster.

1. `session.LiveSession` opens one worker's cluster with its scheduler, and a `World` (`world`) for each scenario.
2. The world applies `templates`; `run` keeps the sentences with their times; `cleanup` empties the cluster before the
   first one and at the end.
3. On a shared cluster, `preflight`, `lease`, `ownership` and `restore` protect foreign objects.
"""
