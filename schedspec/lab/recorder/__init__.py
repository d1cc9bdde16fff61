"""Record what happens in a cluster with any scheduler, and answer questions from the recording.

1. `watch` follows every kind that decides or explains, and `writer` keeps its versions within bounds.
2. `schedspec.virtual.state.over_time` reads them again: the inputs with their times, every gap, the state at a time.
3. `versions` turns them into the versions that monitors read. `judge` judges them as a stream, `evictions` says who
   evicted whom, and `window` is the record of a span of time for the page of scenarios.
"""
