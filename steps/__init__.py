"""The sentences of features: one module for each subject, with one function for each sentence.

A function calls the world of its scenario (Given, When) or waits for a check (Then); `columns` has the columns of
tables that several sentences share. `schedspec.plugin` registers the modules.
"""

from . import (
    acts,
    cards,
    changes,
    columns,
    evictions,
    holdings,
    job_policies,
    jobs,
    kueue,
    nodes,
    own_work,
    phases,
    pods,
    queues,
    shared_cards,
    spans,
    topology,
    zh,
)

MODULES = (
    *(acts, cards, changes, columns, evictions, holdings, job_policies, jobs, nodes, phases, pods),
    *(queues, shared_cards, kueue, own_work, spans, topology, zh),
)
"""All modules of sentences, in the order in which they are registered."""
