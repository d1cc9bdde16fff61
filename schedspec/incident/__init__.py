"""`schedspec reduce` and `schedspec explore`: small cases as features.

`scheduler.incident` finds and reduces cases. This room writes them in the sentences of features
(`feature`) and confirms in the simulated cluster what was written (`confirm`).
"""
