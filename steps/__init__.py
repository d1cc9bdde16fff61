from . import acts, cards, columns, evictions, holdings, jobs, nodes, phases, pods, queues, shared_cards, topology, zh

MODULES = (acts, cards, columns, evictions, holdings, jobs, nodes, phases, pods, queues, shared_cards, topology, zh)
"""All modules of sentences, in the order in which they are registered."""
