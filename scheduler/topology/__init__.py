"""Domains of nodes that are close to each other, and the constraints of gangs and their subgroups on them.

`hyper_nodes` or a node label fills the tree of `domains`. `closeness.ClosenessOfJobs` resolves the constraint of a job;
`subgroups` divides the job's pods.
"""
