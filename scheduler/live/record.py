"""Record the inputs and decisions of a process for replay: `run --record DIR` and SIGUSR2.

If a record cannot be written (the disk is full), recording ends with a log line, and scheduling continues.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from ..core import Core
from ..decide import decide
from ..inputs import Decided, Input, PolicyLoaded
from ..recording.segments import SEGMENT_BYTES, SegmentWriter
from .policy_file import InForce

log = logging.getLogger(__name__)


class RunningRecord:
    """The running record of a process, in a directory. `segment_bytes` is as in `SegmentWriter`."""

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._recorder: SegmentWriter | None = SegmentWriter(directory, segment_bytes=segment_bytes)
        self._policy = ""
        """Text of the policy that was recorded last."""

    def before_cycle(self, core: Core, policy: InForce) -> None:
        """Start a new segment with a checkpoint if one is due, or else record a new policy.

        A replay of the segment lacks the last cycle, so the core forgets it too.
        """
        if self._recorder is None:
            return
        loaded = PolicyLoaded(policy.path, policy.text)
        try:
            if self._recorder.wants_checkpoint:
                core.forget_last_cycle()
                self._recorder.checkpoint(core.cluster, loaded, core.backlog)
            elif policy.text != self._policy:
                self._recorder.write(loaded)
            self._policy = policy.text
        except OSError as error:
            self._give_up(error)

    def add(self, given: Input) -> None:
        """Record an input that was just applied to the state."""
        if self._recorder is None:
            return
        try:
            self._recorder.write(given)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        if self._recorder is None:
            return
        try:
            self._recorder.close()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        log.error("recording stopped: %s", error)
        self._recorder = None


def write_cycle(parent: Path, number: int, now: float, core: Core, policy: InForce) -> None:
    """Write the current state and the decisions that follow from it to a separate recording below `parent`.

    If the core fails, only the state is written: it is what an analysis of the failure needs.
    """
    directory = parent / f"cycle-{number}-{int(now)}"
    recorder = SegmentWriter(directory)
    try:
        recorder.checkpoint(core.cluster, PolicyLoaded(policy.path, policy.text), core.backlog)
        recorder.write(Decided(number, now, decide(core.cluster, policy.policy, now, backlog=core.backlog)))
        recorder.close()
    except OSError as error:
        log.error("cycle record not written: %s", error)
    except Exception:  # a defect of the core
        with contextlib.suppress(OSError):
            recorder.close()
        log.exception("cycle record written without decisions, because the core failed: %s", directory)
    else:
        log.info("cycle record written: %s", directory)
