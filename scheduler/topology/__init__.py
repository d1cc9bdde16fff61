"""Domains of nodes that are close to each other, and what gangs and their subgroups ask of them."""
