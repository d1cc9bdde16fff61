"""Named distributions of a synthetic load. Each turns a number from 0 to 1 into a value: equal draws, equal values."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any

Quantile = Callable[[float], float]
"""Maps a share above 0 and below 1 to the value that this share of draws does not exceed."""
Read = Callable[[Any], float]
"""Reads one parameter. Raises ValueError."""

NAMES = {
    "constant": "VALUE",
    "exponential": "MEAN",
    "uniform": "{from: LEAST, to: MOST}",
    "lognormal": "{median: VALUE, sigma: NUMBER}",
    "pareto": "{least: VALUE, shape: NUMBER}",
    "choice": "{VALUE: WEIGHT, …}",
}
"""Distribution → the notation of its parameters."""


def parse(given: Any, read: Read) -> Quantile:
    """Read a distribution: a value, or `{NAME: PARAMETERS}`; `most` beside the name limits the values.

    Raises:
        ValueError: The value is no distribution; the message says why.
    """
    if not isinstance(given, Mapping):
        value = read(given)
        return lambda _: value
    names = [name for name in given if name != "most"]
    if len(names) != 1 or names[0] not in NAMES:
        known = ", ".join(f"{name}: {parameters}" for name, parameters in NAMES.items())
        raise ValueError(f"{dict(given)!r} names no distribution; known are {known}")
    quantile = _MAKE[names[0]](given[names[0]], read)
    most = read(given["most"]) if "most" in given else math.inf
    return lambda share: min(quantile(share), most)


def _constant(given: Any, read: Read) -> Quantile:
    value = read(given)
    return lambda _: value


def _exponential(given: Any, read: Read) -> Quantile:
    mean = read(given)
    return lambda share: -mean * math.log1p(-share)


def _uniform(given: Any, read: Read) -> Quantile:
    least, most = (read(text) for text in _parameters(given, "uniform", "from", "to"))
    if least > most:
        raise ValueError(f"from {given['from']} is above to {given['to']}")
    return lambda share: least + share * (most - least)


def _lognormal(given: Any, read: Read) -> Quantile:
    median, sigma = _parameters(given, "lognormal", "median", "sigma")
    middle, width, normal = read(median), _positive(sigma, "sigma"), NormalDist()
    return lambda share: middle * math.exp(width * normal.inv_cdf(share))


def _pareto(given: Any, read: Read) -> Quantile:
    least, shape = _parameters(given, "pareto", "least", "shape")
    begin, exponent = read(least), _positive(shape, "shape")
    return lambda share: float(begin / (1.0 - share) ** (1.0 / exponent))


def _choice(given: Any, read: Read) -> Quantile:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"choice {given!r} is not {{VALUE: WEIGHT, …}}")
    values = [read(value) for value in given]
    sums = list(itertools.accumulate(_positive(weight, "a weight") for weight in given.values()))
    return lambda share: values[min(bisect.bisect_right(sums, share * sums[-1]), len(values) - 1)]


_MAKE: dict[str, Callable[[Any, Read], Quantile]] = {
    "constant": _constant,
    "exponential": _exponential,
    "uniform": _uniform,
    "lognormal": _lognormal,
    "pareto": _pareto,
    "choice": _choice,
}


def _parameters(given: Any, name: str, *keys: str) -> tuple[Any, ...]:
    if not isinstance(given, Mapping) or {*given} != {*keys}:
        raise ValueError(f"{given!r} is not {NAMES[name]}, as {name} needs it")
    return tuple(given[key] for key in keys)


def _positive(given: Any, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
        raise ValueError(f"{name} {given!r} is not a number above 0")
    return float(given)
