"""Limit the work of one turn of the event loop.

The limit is a number of items, so that it is the same on every machine. An item takes about 20 to 60 microseconds.
"""

from __future__ import annotations

import asyncio

ITEMS_PER_TURN = 64
"""Items per turn. An item is a pod that is applied to the state, is bound, or gets a status."""


class Turns:
    """Yield to other tasks after every `most` items."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    async def spent(self) -> None:
        """Count one finished item."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._most
            await asyncio.sleep(0)
