"""Two monitors of queues: capability and guarantee."""
