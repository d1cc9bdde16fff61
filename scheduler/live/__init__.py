"""The shell around the pure core: watch, decide, write.

Code that can fail or wait is in this package, and no code in this package decides what is scheduled.

`process.serve` runs one `App` (`app`), which creates all parts: `state_feed` fills the inbox from the watches, `loop`
decides, `writer` sends binds and evictions, and `status_builder` and `status_writer` publish the reasons.
"""
