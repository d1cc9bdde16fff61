"""How many, as people say it: `exactly 2`, `between 2 and 4`, `at least 3`, `all but one of the`, `a third of the`.

`MANY` and `AMOUNT` are the wordings of these; `bounds` and `amount` are their meaning. A step gets the English words
in every language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from . import tables
from .step_decorators import Wording

LIMIT = 10**9
"""Stands for no upper bound."""
_PARTS = {
    "half": (1, 2),
    "a third": (1, 3),
    "two thirds": (2, 3),
    "a quarter": (1, 4),
    "three quarters": (3, 4),
    "all": (1, 1),
}
_SHARE = rf"(?:{'|'.join(_PARTS)}|all but (?:one|[0-9]+)|[0-9]+ ?%) of the"
_RESOURCE = "[A-Za-z][-A-Za-z0-9./]*"
_NUMBER = "[0-9][0-9A-Za-z.]*"
MANY = Wording(
    rf"(?:(?:exactly|at least|at most) )?[0-9]+|between [0-9]+ and [0-9]+|{_SHARE}",
    {form: form for form in ("exactly 2", "at least 2", "at most 2", "between 2 and 4", "half of the")},
    translate=lambda text: f"exactly {text}" if text.isdecimal() else text,
)
"""A number of pods."""
AMOUNT = Wording(rf"{_NUMBER} {_RESOURCE}|{_SHARE} {_RESOURCE}")
"""An amount of a resource: `8 gpus`, `4 cpu`, `64Gi memory`, `8 amd.com/gpu`, `a third of the gpus`."""
REQUEST = Wording(rf"{_NUMBER} {_RESOURCE}")
"""An amount of a resource that is no part of the nodes: `2 gpus`, `64Gi memory`."""
RANGE = Wording(rf"(?:between {_NUMBER} and )?(?:{AMOUNT.pattern})")
"""An amount of a resource, or a range: `between 2 and 4 gpus`."""
SPAN = Wording(
    r"[0-9]+ (?:seconds?|minutes?|hours?)|an? (?:second|minute|hour)",
    translate=lambda text: re.sub("^an? ", "1 ", text),
)
"""A time: `8 seconds`, `5 minutes`, `an hour`."""
LONGEST = 24 * 3600.0
"""Maximum number of seconds of a time: on a real cluster a scenario waits for it."""
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_CHINESE_UNITS = {"秒": "seconds", "分钟": "minutes", "小时": "hours"}
_CHINESE = {
    r"恰好有 ?([0-9]+) ?个": r"exactly \1",
    r"至少有 ?([0-9]+) ?个": r"at least \1",
    r"至多有 ?([0-9]+) ?个": r"at most \1",
    r"有 ?([0-9]+) ?到 ?([0-9]+) ?个": r"between \1 and \2",
    rf"({_NUMBER}) ?到 ?({_NUMBER} {_RESOURCE})": r"between \1 and \2",
}
_CHINESE_SHARES = {
    "全部": "all",
    "一半": "half",
    "三分之一": "a third",
    "三分之二": "two thirds",
    "四分之一": "a quarter",
    "四分之三": "three quarters",
    "除一个外的全部": "all but one",
    r"除 ?([0-9]+) ?个外的全部": r"all but \1",
    r"([0-9]+) ?%": r"\1 %",
}


def _in_english(text: str) -> str:
    """Return the English words of a Chinese quantity; any other text unchanged."""
    share, of, rest = text.removeprefix("有").strip().rpartition("的")
    for pattern, english in _CHINESE.items():
        if found := re.fullmatch(pattern, text):
            return found.expand(english)
    for pattern, english in _CHINESE_SHARES.items():
        if of and (found := re.fullmatch(pattern, share)):
            return f"{found.expand(english)} of the{rest}"
    return text


_OF_CHINESE = f"(?:{'|'.join(_CHINESE_SHARES)})的".replace("([0-9]+)", "[0-9]+")
MANY_ZH = Wording(
    "|".join((*(part.replace("(", "(?:") for part in _CHINESE if "有" in part), rf"有 ?{_OF_CHINESE}")),
    {form: _in_english(form) for form in ("恰好有 2 个", "至少有 2 个", "至多有 2 个", "有 2 到 4 个", "有一半的")},
    translate=_in_english,
)
AMOUNT_ZH = Wording(rf"{AMOUNT.pattern}|{_OF_CHINESE} {_RESOURCE}", translate=_in_english)
RANGE_ZH = Wording(rf"(?:{_NUMBER} ?到 ?)?(?:{AMOUNT_ZH.pattern})", translate=_in_english)


def _span_in_english(text: str) -> str:
    unit = text.lstrip("0123456789 ")
    return f"{text.removesuffix(unit).strip()} {_CHINESE_UNITS[unit]}"


SPAN_ZH = Wording(f"[0-9]+ ?(?:{'|'.join(_CHINESE_UNITS)})", translate=_span_in_english)


def seconds(span: str) -> float:
    """Return the seconds of a time.

    Raises:
        ValueError: It is no time, or longer than any run.
    """
    number, _, unit = span.partition(" ")
    found = int(number) * _SECONDS[unit.removesuffix("s")]
    if not 0 < found <= LONGEST:
        raise ValueError("write at least 1 second, and at most 24 hours")
    return found


def problem(many: str) -> str:
    """Return why these words say nothing of any total; empty if they say something."""
    numbers = [int(number) for number in re.findall("[0-9]+", many)]
    if many.startswith("between") and numbers[0] >= numbers[1]:
        return f"no range is {many}; write the smaller number first"
    if many.startswith("at least") and not numbers[0]:
        return "there are always at least 0; name at least 1"
    return "there are at most 100 % of anything" if many.endswith("% of the") and numbers[0] > 100 else ""


def bounds(many: str, total: int) -> tuple[int, int]:
    """Return the least and the most number that these words permit.

    Raises:
        ValueError: A part of the total is no whole number of things.
    """
    if many.endswith(" of the"):
        part = share(many.removesuffix(" of the"), total)
        if part.denominator != 1 or part < 0:
            raise ValueError(f"{many} {total} is {float(part):g}: write a whole number, or a range")
        return int(part), int(part)
    low, *high = (int(number) for number in re.findall("[0-9]+", many))
    if many.startswith("at least"):
        return low, LIMIT
    return (0 if many.startswith("at most") else low), (high or [low])[0]


def limits(text: str) -> list[str]:
    """Return the amounts in words about a resource: of `between 2 and 4 gpus` both, of a share of the nodes none.

    Raises:
        ValueError: The resource has no such amount, or the range has nothing in it.
    """
    first, _, last = text.removeprefix("between ").rpartition(" and ")
    words, _, word = last.rpartition(" ")
    read = tables.amount_of(tables.resource(word))
    found = [read(number) for number in (first, words) if number and not number.endswith(" of the")]
    if len(found) > 1 and tables.amount(found[0]) >= tables.amount(found[1]):
        raise ValueError("is no range: write the smaller amount first")
    return found


def amounts(text: str) -> dict[str, str]:
    """Return `cpu 4, a third of the gpus` as {cpu: 4, nvidia.com/gpu: "a third of the"}. Raises ValueError."""
    found: dict[str, str] = {}
    for part in tables.names(text):
        words, of, word = part.rpartition(" of the ")
        if of and not re.fullmatch(_SHARE, f"{words} of the"):
            raise ValueError(f"{words!r} is no part; write for instance: a third of the gpus, 30 % of the cpu")
        if of and len(word.split()) != 1:
            raise ValueError(f"{word!r} is no resource; write one word, for instance gpus")
        own = {tables.resource(word): f"{words} of the"} if of else tables.amounts(part)
        if twice := own.keys() & found.keys():
            raise ValueError(f"{', '.join(twice)} appears twice")
        found |= own
    return found


def of_nodes(claimed: Mapping[str, str], total: Mapping[str, Decimal]) -> dict[str, str]:
    """Return amounts in which each part of a resource is one of this total.

    Raises:
        ValueError: A part is no whole number of devices, or nothing has the resource.
    """
    return {name: _part(name, words, total) if words.endswith(" of the") else words for name, words in claimed.items()}


def _part(name: str, words: str, total: Mapping[str, Decimal]) -> str:
    thousandths = share(words.removesuffix(" of the"), Fraction(total.get(name, 0))) * 1000
    whole = thousandths.denominator == 1 and not thousandths % 1000
    if thousandths <= 0 or (name != "memory" and thousandths.denominator != 1) or ("/" in name and not whole):
        raise ValueError(f"{words} {total.get(name, 0)} {name} is {float(thousandths / 1000):g}: write an amount")
    return str(thousandths // 1000) if whole or name == "memory" else f"{thousandths}m"


def share(words: str, total: int | Fraction) -> Fraction:
    """Return a part of a total: `a third`, `all but one`, `30 %`."""
    if words.startswith("all but "):
        number = words.removeprefix("all but ")
        return Fraction(total) - (1 if number == "one" else int(number))
    numerator, denominator = (int(words.rstrip(" %")), 100) if words.endswith("%") else _PARTS[words]
    return Fraction(total) * numerator / denominator
