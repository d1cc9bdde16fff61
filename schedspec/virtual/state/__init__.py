"""A cluster's state as data: read it from files, take it from a cluster, and redact it.

1. `reader.read_state` reads the output of `kubectl get -o json`, a dump, a SIGUSR2 dump, or a recording.
   `known_jobs` adds pods that the controllers have not created yet; `kueue` keeps the objects that only Kueue reads.
2. `dump` reads the state of a cluster and writes it as a file of one segment (`scheduler.recording`).
3. `over_time` reads the recording of a cluster: its state at any time, and what happened since.
4. `redaction` replaces names without changing their order, and keeps only what influences decisions.
"""

from .reader import At, holds_load, read_state, require_ours
from .state import CutStateError, ForeignStateError, OtherVersionError, State, StateError, TooLargeError, TooOldError
