"""Write small cases as features, for `schedspec reduce` and `schedspec explore`.

`scheduler.incident` finds and reduces cases. This room reads incidents from recordings and records (`of_recording`,
`of_record`), writes cases in the sentences of features (`feature`, `written`), and runs what was written in the
simulated cluster (`confirm`) or, for each candidate, on a cluster with another scheduler (`live`).
"""
