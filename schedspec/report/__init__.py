"""What a run leaves behind: one JSON record a scenario (the source of every picture), and the summary."""
