"""Monitors of evictions: each pod or Workload of Kueue had to go, the amount is in proportion, and none is repeated."""
