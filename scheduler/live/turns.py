"""How much is done in one turn of the event loop.

The one rule: it is counted in items, so that it is the same on every machine; an item takes some 20 to 60 microseconds.
"""

from __future__ import annotations

import asyncio

SLICE = 64
"""Items a turn: pods that are taken in, bound, told why they wait."""


class Turns:
    """Lets others have the event loop after every so many items."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    async def spent(self) -> None:
        """One more item is done."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._most
            await asyncio.sleep(0)
