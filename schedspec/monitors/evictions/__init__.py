"""Four monitors of evictions: each was needed (a pod, or a Workload of Kueue), in proportion, and none is repeated."""
