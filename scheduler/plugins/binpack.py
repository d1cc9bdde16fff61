"""binpack: fill nodes that are in use before opening others (semantics: Volcano's `plugins/binpack`)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model.nodes import Amounts, Vector
from ..model.resources import CPU, MEMORY
from ..model.task import Task
from ..policy.hooks import UsageScore
from ..policy.model import PluginOption
from ..policy.schema import INT, TEXT, Argument


class Binpack(Plugin, UsageScore):
    """Prefer nodes that are in use."""

    name = "binpack"
    arguments: ClassVar = {
        "binpack.weight": Argument(INT, 0, default=1, means="weight of this score among all"),
        "binpack.cpu": Argument(INT, 0, default=1, means="weight of cpu"),
        "binpack.memory": Argument(INT, 0, default=1, means="weight of memory"),
        "binpack.resources": Argument(TEXT, default="", means="further resources that count, separated by commas"),
    }
    families: ClassVar = {"binpack.resources.": Argument(INT, 0, default=1, means="weight of one of these")}

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._weight = self.argument("binpack.weight")
        self._weights = {CPU: self.argument("binpack.cpu"), MEMORY: self.argument("binpack.memory")}
        for name in filter(None, (part.strip() for part in self.argument("binpack.resources").split(","))):
            self._weights[name] = self.argument(f"binpack.resources.{name}")

    def open(self, session: Session) -> None:
        self._nodes = session.nodes

    def usage_score(self, task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        """Return the weighted mean of the used fractions of the requested dimensions: 0 to 100 x weight.

        The fractions include the task; a dimension in which the task does not fit counts 0.
        """
        total, weights = np.zeros(used.shape[:-1]), 0.0
        for name, weight in self._weights.items() if self._weight else ():
            if task.request.get(name, 0) <= 0 or not weight:
                continue
            column = self._nodes.dimensions[name]
            in_use, whole = used[..., column], allocatable[..., column]
            with np.errstate(divide="ignore", invalid="ignore"):
                part = in_use / whole
            total += weight * np.where((whole > 0) & (in_use <= whole), part, 0.0)
            weights += weight
        return total * (100.0 * self._weight / weights) if weights else total
