"""Who schedules in a run, and how it is started, made ready and ended."""
