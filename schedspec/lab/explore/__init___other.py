"""`schedspec explore`: random scenarios, judged by monitors and by general promises.

`scheduler.explore` draws cases and judges promises. This room judges a simulated case by the monitors (`judge`), runs
many seeds (`rounds`), and reduces and writes findings (`found`). With other schedulers, cases run on a cluster
(`on_cluster`) and are limited to what the adapter and a profile support (`profiles`).
"""
