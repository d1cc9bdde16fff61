"""Domains of nodes that are close to each other, and the constraints of gangs and their subgroups on them."""
