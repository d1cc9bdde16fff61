"""Write short SVG paths: pixels with one digit after the decimal point."""

from __future__ import annotations

from collections.abc import Sequence


def band(rows: Sequence[tuple[float, float, float]], right: float, base: float, scale: float) -> str:
    """Return the path of the area between a lower and an upper step line. A row is x, low and high."""
    upper: list[tuple[float, float, float]] = []
    lower: list[tuple[float, float, float]] = []
    for n, (x, low, high) in enumerate(rows):
        until = rows[n + 1][0] if n + 1 < len(rows) else right
        if upper and upper[-1][1] == high and lower[-1][1] == low:
            upper[-1] = (upper[-1][0], high, until)
            lower[-1] = (lower[-1][0], low, until)
            continue
        upper.append((x, high, until))
        lower.append((x, low, until))
    path = f"M{number(upper[0][0])} {number(base - upper[0][1] * scale)}"
    for x, high, until in upper:
        path += f"H{number(x)}V{number(base - high * scale)}H{number(until)}"
    for x, low, until in reversed(lower):
        path += f"H{number(until)}V{number(base - low * scale)}H{number(x)}"
    return path + "Z"


def curve(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return the path of an arrow from a victim to its preemptor: it starts to the right and arrives from the left."""
    bend = max(26.0, abs(to_x - x) * 0.45)
    points = ((x + bend, y), (to_x - bend, to_y), (to_x - 2, to_y))
    return f"M{number(x)} {number(y)}C" + " ".join(f"{number(a)} {number(b)}" for a, b in points)


def number(value: float) -> str:
    """Format a length in pixels."""
    return f"{value:.1f}".removesuffix(".0")
