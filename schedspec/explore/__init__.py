"""`schedspec explore`: random scenarios, judged by monitors and by general promises.

`scheduler.explore` draws cases and judges promises. This room turns a play into a history for the monitors (`versions`,
`judge`), runs many seeds (`rounds`), and reduces and writes what breaks (`found`); `on_cluster` plays cases with other
schedulers.
"""
