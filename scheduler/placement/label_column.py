"""Match one label of many items with a requirement, as an array.

A column has the label's value of each item, as the number of the value. A requirement is looked up value by value, and
compared with all items at once: `NotIn` is the complement of `In`, and numbers are sorted once for `Gt` and `Lt`. The
cost is that of the requirement's values, and a few array operations, whatever the operator and the values of the items.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

import numpy as np

from ..model.matching import as_integer
from ..model.nodes import Mask, Rows
from ..model.objects import SelectorRequirement

VALUES_A_STEP = 16
"""How many values of a requirement are looked up in one step."""
ITEMS_A_STEP = 256
"""How many items of a column are compared in one step."""
REQUIREMENT = 6
"""The steps that one requirement costs, whatever its values and the items."""


class LabelColumn:
    """The values of one label.

    Args:
        size: the number of items.
        found: the value of each item that has the label, by the item's row.
    """

    def __init__(self, size: int, found: Mapping[int, str]) -> None:
        self._size = size
        self.numbers = {value: number for number, value in enumerate(dict.fromkeys(found.values()))}
        """Value → its number."""
        self._rows: Rows = np.fromiter(found, np.int64, len(found))
        self._of_row: Rows = np.fromiter(map(self.numbers.__getitem__, found.values()), np.int64, len(found))
        self._integers: tuple[list[int], Rows] | None = None

    def having(self, values: Iterable[str]) -> Mask:
        """Return the items with one of these values."""
        return self._with([number for value in values if (number := self.numbers.get(value)) is not None])

    def holding(self, item: SelectorRequirement) -> Mask:
        """Return the items that meet a requirement; `requirement_holds` decides the same for one item."""
        match item.operator:
            case "In":
                return self.having(item.values or ())
            case "NotIn":
                return ~self.having(item.values or ())
            case "Exists":
                return self._present()
            case "DoesNotExist":
                return ~self._present()
            case "Gt" | "Lt":
                return self._compared(item.operator, next(iter(item.values or ()), ""))
        return np.zeros(self._size, dtype=np.bool_)

    def _present(self) -> Mask:
        mask = np.zeros(self._size, dtype=np.bool_)
        mask[self._rows] = True
        return mask

    def _with(self, numbers: list[int] | Rows) -> Mask:
        """Return the items whose value has one of these numbers."""
        mask = np.zeros(self._size, dtype=np.bool_)
        if len(numbers):
            chosen = np.zeros(len(self.numbers), dtype=np.bool_)
            chosen[numbers] = True
            mask[self._rows] = chosen[self._of_row]
        return mask

    def _compared(self, operator: str, text: str) -> Mask:
        limit = as_integer(text)
        if limit is None:
            return self._with([])
        if self._integers is None:
            numbered = ((as_integer(value), number) for value, number in self.numbers.items())
            known = sorted((integer, number) for integer, number in numbered if integer is not None)
            self._integers = [i for i, _ in known], np.array([number for _, number in known], dtype=np.int64)
        integers, numbers = self._integers
        if operator == "Gt":
            return self._with(numbers[bisect_right(integers, limit) :])
        return self._with(numbers[: bisect_left(integers, limit)])


def steps_of_requirement(item: SelectorRequirement, items: int) -> int:
    """Return how many steps it takes to match one requirement with a column of this many items."""
    return REQUIREMENT + len(item.values or ()) // VALUES_A_STEP + items // ITEMS_A_STEP
