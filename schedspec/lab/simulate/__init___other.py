"""Extend the scheduler's simulation for `schedspec simulate`: many runs at once (`sweep`), monitors (`monitored`)."""
