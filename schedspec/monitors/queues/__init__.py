"""Two monitors of queues, capability and guarantee, and the arithmetic that they share."""
