"""What `schedspec simulate` adds to the scheduler's simulation: many runs at once (`sweep`), monitors (`monitored`)."""
