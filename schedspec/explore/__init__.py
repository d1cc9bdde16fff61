"""`schedspec explore`: random scenarios, judged by monitors and by general promises.

`scheduler.explore` draws cases and judges promises. This room judges a play by the monitors (`judge`), runs many seeds
(`rounds`), and reduces and writes what breaks (`found`). Other schedulers play on a cluster (`on_cluster`): what their
adapters and a profile support (`profiles`).
"""
