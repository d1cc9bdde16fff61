"""Programs that clusters need: versions (`pinned`), sources and cache. `binaries.provide` returns their paths."""
