"""binpack: fill nodes that are in use before opening others (semantics: Volcano's ``plugins/binpack``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..model.nodes import Amounts, Vector
from ..model.resources import CPU, MEMORY
from ..model.task import Task

if TYPE_CHECKING:
    from ..framework.session import Register, Session
    from ..policy.model import PluginOption


class Binpack:
    """The plugin.

    Arguments ``binpack.weight``, ``binpack.cpu``, ``binpack.memory`` (1 each), ``binpack.resources`` (names, comma
    separated) and
    ``binpack.resources.<name>`` (1).
    """

    name = "binpack"

    def __init__(self, option: PluginOption) -> None:
        arguments = option.arguments

        def weight(key: str) -> float:
            return float(arguments.get(key, 1))

        self._weight = weight("binpack.weight")
        self._weights = {CPU: weight("binpack.cpu"), MEMORY: weight("binpack.memory")}
        for name in filter(None, (part.strip() for part in str(arguments.get("binpack.resources", "")).split(","))):
            self._weights[name] = weight(f"binpack.resources.{name}")

    def open(self, session: Session, register: Register) -> None:
        self._nodes = session.nodes
        if self._weight:
            register("usage_score", self._score)

    def _score(self, task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        """Per requested dimension the part in use with the task; 0 where it would not fit; weighted mean, 0 to 100."""
        total, weights = np.zeros(used.shape[:-1]), 0.0
        for name, weight in self._weights.items():
            if task.request.get(name, 0) <= 0 or not weight:
                continue
            column = self._nodes.dimensions[name]
            in_use, whole = used[..., column], allocatable[..., column]
            with np.errstate(divide="ignore", invalid="ignore"):
                part = in_use / whole
            total += weight * np.where((whole > 0) & (in_use <= whole), part, 0.0)
            weights += weight
        return total * (100.0 * self._weight / weights) if weights else total
