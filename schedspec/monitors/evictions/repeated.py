"""Monitor: no pod is evicted twice for the same cause.

A violation is a re-created pod that starts again and is evicted again for the same preemptor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ledger import Ledger, Violation
from ..rules import Rules

NAME = "repeated-eviction"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    """Yield repeated evictions.

    The cause is the scheduler's message; pods of one name are one pod and its successors.
    """
    del rules
    seen: dict[tuple[str, str], str] = {}
    for act in ledger.evictions():
        cause = (act.name, act.cause)
        if act.message and seen.get(cause, act.uid) != act.uid:
            yield Violation(NAME, act.time, act.name, f"evicted again for the same cause: {act.message}")
        seen[cause] = act.uid
