"""Programs that clusters need: their versions, their sources and their cache."""
