"""Make a load from a description: arrival rates with a day's rhythm, sizes and run times by named distributions.

1. The file is YAML: `for` (how long jobs arrive), `start`, `seed`, and for each queue its rate and distributions.
2. Arrivals of a queue are a Poisson process. Its rate follows `day`, 24 factors whose mean counts as 1.
3. Each queue draws from generators of its own, so that a change of one queue does not change the jobs of other queues.

The one rule: the seed and the file determine the load, on every machine.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import yaml

from ...scheduler.model import times
from ...scheduler.model.documents import DocumentError, compose, construct
from ...scheduler.model.input_files import read_text
from .columns import CellError, InputError, TraceJob, moment, quantity, queue_name
from .trace import Trace

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


_TOP = {"for", "start", "seed", "queues"}
_QUEUE = {"rate", "day", "run_time", "pods", "cards", "cpu", "memory", "priority", "user"}
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_HOUR = 3600.0
_HOURS = 24
_MAX_JOBS = 10_000_000
_MAX_PODS = 1_000_000


def read_synthetic(path: Path, resource: str, seed: int | None, queues: list[str] | None = None) -> tuple[Trace, int]:
    """Make the load that a file describes.

    `seed`: replaces the seed of the file. `queues`: the queues that exist; None if the file defines them.

    Returns:
        The jobs, by time of submission, and the seed.

    Raises:
        InputError: The file cannot be read, or a field is invalid.
    """
    return _File(path, resource).load(seed, queues)


class _File:
    def __init__(self, path: Path, resource: str) -> None:
        self._path, self._resource = path, resource
        try:
            nodes = compose(read_text(path, pipes=True))
            self._node = nodes[0] if len(nodes) == 1 else None
            self._content = construct(nodes[0]) if len(nodes) == 1 else None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(str(path), f"cannot be read: {error}", "name a YAML file in UTF-8") from error
        except DocumentError as error:
            raise InputError(f"{path}:{error.line}", error.problem, error.remedy) from error
        if self._content is None:
            problem = f"has {len(nodes)} documents; one is needed" if nodes else "is empty"
            raise InputError(str(path), problem, "see docs/simulation.md for an example")

    def load(self, seed: int | None, queues: list[str] | None) -> tuple[Trace, int]:
        top = self._mapping(self._content, _TOP, ())
        span = self._field(top, ("for",), _seconds)
        start = self._field(top, ("start",), lambda text: moment(str(text)), 0)
        used = self._field(top, ("seed",), _whole(0), 1) if seed is None else seed
        described = top.get("queues")
        if not isinstance(described, Mapping) or not described:
            raise self._error(("queues",), "has no queue", "write queues: {research: {rate: 60/h, run_time: 20m}}")
        jobs: list[TraceJob] = []
        for name, given in described.items():
            self._check(("queues", name), lambda item: _queue(item, queues), str(name))
            drawn = self._jobs(str(name), self._mapping(given, _QUEUE, ("queues", name)), start, span, used)
            for job in drawn:
                jobs.append(job)
                if len(jobs) > _MAX_JOBS:
                    raise self._error(("queues", name), f"more than {_MAX_JOBS} jobs", "lower rate or for")
        if not jobs:
            raise self._error(("for",), "no job arrives in this time", "raise rate or for")
        jobs.sort(key=lambda job: (job.submitted, job.queue))
        numbered = [TraceJob(n, job.submitted, job.run_time, job.pods, job.requests, job.queue, job.priority, job.user)
                    for n, job in enumerate(jobs, 1)]  # fmt: skip
        return Trace(f"{self._path} with seed {used}", numbered), used

    def _jobs(self, name: str, given: Mapping[str, Any], start: float, span: float, seed: int) -> Iterator[TraceJob]:
        at = ("queues", name)
        rate = self._field(given, (*at, "rate"), _rate)
        day = self._field(given, (*at, "day"), _day, [1.0] * _HOURS)
        run_time = self._distribution(given, (*at, "run_time"), _run_time)
        pods = self._distribution(given, (*at, "pods"), _whole(1), 1)
        cards = self._distribution(given, (*at, "cards"), _whole(0), 1)
        amounts = {
            dimension: self._field(given, (*at, dimension), quantity(dimension), "") for dimension in ("cpu", "memory")
        }
        priority = self._distribution(given, (*at, "priority"), _priority) if "priority" in given else None
        user = self._field(given, (*at, "user"), str, "")
        random_of = {what: random.Random(f"{seed}/{name}/{what}") for what in _QUEUE}

        def draw(quantile: Quantile, what: str) -> float:
            return quantile(min(max(random_of[what].random(), 1e-12), 1 - 1e-12))

        for submitted in _arrivals(random_of["rate"], rate, day, start, span):
            wanted = {self._resource: f"{round(draw(cards, 'cards'))}", **amounts}
            yield TraceJob(
                0,
                round(submitted, 3),
                max(round(draw(run_time, "run_time"), 3), 0.001),
                max(1, round(draw(pods, "pods"))),
                tuple((dimension, amount) for dimension, amount in wanted.items() if amount not in ("0", "")),
                name,
                None if priority is None else round(draw(priority, "priority")),
                user,
            )

    # ------------------------------------------------------------------------------------------------------- fields

    def _mapping(self, given: Any, known: set[str], at: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise self._error(at, f"{given!r} is not a mapping", f"write fields of {', '.join(sorted(known))}")
        for name in given:
            if name not in known:
                raise self._error((*at, str(name)), "is not a field", f"fields are {', '.join(sorted(known))}")
        return given

    def _field(self, given: Mapping[str, Any], at: tuple[str, ...], read: Callable[[Any], Any], *default: Any) -> Any:
        if at[-1] in given:
            return self._check(at, read, given[at[-1]])
        if not default:
            raise self._error(at, "is missing", _EXAMPLES[at[-1]])
        return default[0]

    def _distribution(
        self, given: Mapping[str, Any], at: tuple[str, ...], read: Callable[[Any], float], *default: Any
    ) -> Quantile:
        found: Quantile = self._field(
            given, at, lambda value: parse(value, read), *[parse(value, read) for value in default]
        )
        return found

    def _check(self, at: tuple[str, ...], read: Callable[[Any], Any], value: Any) -> Any:
        try:
            return read(value)
        except CellError as error:
            raise self._error(at, f"{value!r} {error.problem}", error.remedy) from None
        except ValueError as error:
            raise self._error(at, str(error), _EXAMPLES.get(at[-1], "correct this field")) from None

    def _error(self, at: tuple[str, ...], problem: str, remedy: str) -> InputError:
        return InputError(f"{self._path}:{self._line(at)}", f"{'.'.join(at) or 'the file'}: {problem}", remedy)

    def _line(self, at: tuple[str, ...]) -> int:
        """Return the line of the innermost field that exists."""
        node, line = self._node, 1
        for name in at:
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            found = next(((key, value) for key, value in pairs if str(key.value) == name), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        return line


_EXAMPLES = {
    "for": "write for: 7d",
    "start": "write start: 2026-01-05T00:00:00Z",
    "seed": "write seed: 1",
    "rate": "write rate: 60/h",
    "day": "write 24 factors, one for each hour (UTC)",
    "run_time": "write run_time: 20m, or run_time: {lognormal: {median: 20m, sigma: 1.5}}",
    "pods": "write pods: 1, or pods: {choice: {1: 70, 8: 30}}",
    "cards": "write cards: 1, or cards: {choice: {1: 70, 8: 30}}",
    "priority": "write priority: 100, or priority: {choice: {0: 90, 100: 10}}",
}


def _arrivals(draws: random.Random, rate: float, day: list[float], start: float, span: float) -> Iterator[float]:
    """Yield the times of a Poisson process with a rate for each hour of the day (UTC)."""
    mean = math.fsum(day) / _HOURS
    at, left = start, -math.log1p(-draws.random())
    while at < start + span:
        hour = int(at % (_HOUR * _HOURS) // _HOUR)
        until = min((at // _HOUR + 1) * _HOUR, start + span)
        current = rate * day[hour] / mean
        if left > current * (until - at):  # no arrival in this hour
            left -= current * (until - at)
            at = until
            continue
        at += left / current
        yield at
        left = -math.log1p(-draws.random())


def _seconds(given: Any) -> float:
    text = str(given).strip()
    try:
        found: float | None = float(text[:-1]) * 86400 if text.endswith("d") else float(text)
    except ValueError:
        found = times.duration(text)
    if found is None or not 0 < found < math.inf:
        raise ValueError(f"{given!r} is not a time above 0")
    return found


def _run_time(given: Any) -> float:
    return math.inf if str(given) in ("inf", ".inf") else _seconds(given)


def _rate(given: Any) -> float:
    number, _, unit = str(given).partition("/")
    try:
        found = float(number) / _UNITS[unit.strip()]
    except (ValueError, KeyError):
        raise ValueError(f"{given!r} is not a number of jobs per s, min, h or d") from None
    if not 0 < found < math.inf:
        raise ValueError(f"{given!r} is not a rate above 0")
    return found


def _day(given: Any) -> list[float]:
    numbers = given if isinstance(given, list) else []
    if len(numbers) != _HOURS or not all(
        isinstance(number, (int, float)) and 0 <= number < math.inf for number in numbers
    ):
        raise ValueError(f"{given!r} is not 24 numbers of at least 0")
    if not any(numbers):
        raise ValueError("every hour is 0, so that no job arrives")
    return [float(number) for number in numbers]


def _whole(least: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= _MAX_PODS:
            raise ValueError(f"{given!r} is not a whole number from {least} to {_MAX_PODS}")
        return given

    return read


def _priority(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or abs(given) > 1_000_000_000:
        raise ValueError(f"{given!r} is not a whole number from -1000000000 to 1000000000")
    return given


def _queue(name: str, known: list[str] | None) -> str:
    if queue_name(name) != name:
        raise CellError("is not a name of a queue", "use lower-case letters, digits and -")
    if known is not None and name not in known:
        raise CellError("is not a queue", f"add it to --queues, which has {', '.join(sorted(known))}")
    return name
