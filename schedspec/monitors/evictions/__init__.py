"""Monitors of evictions: each eviction of a pod or a Kueue Workload was needed, proportionate and not repeated."""
