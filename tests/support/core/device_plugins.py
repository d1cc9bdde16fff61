"""Decode a pod's cards by the rules of the device plugins, independently of the scheduler's code.

The vGPU device plugin (`DecodePodDevices`): `;` separates containers, `:` separates cards, an entry with a comma is
`UUID,kind,MiB,percent of the cores`. Volcano's device plugin takes the indexes of `gpu-index`.
"""

from __future__ import annotations

from collections.abc import Mapping


def decode_pod_devices(text: str) -> list[list[tuple[str, str, int, int]]]:
    """Return the cards of each container: UUID, kind, MiB, percent of the cores."""
    return [
        [
            (fields[0], fields[1], int(fields[2]), int(fields[3]))
            for fields in (entry.split(",") for entry in container.split(":") if "," in entry)
        ]
        for container in (text.split(";") if text else ())
    ]


def next_container(text: str) -> int:
    """Return the position of the container whose cards the vGPU device plugin hands out first."""
    return next(
        position
        for position, cards in enumerate(decode_pod_devices(text))
        if any(kind == "NVIDIA" for _, kind, _, _ in cards)
    )


def cards_in(annotations: Mapping[str, str]) -> str:
    """Return the cards of a bound pod: `0, 1`, or `GPU-a 4000` with MiB; `;` between containers."""
    if "volcano.sh/gpu-index" in annotations:
        return ", ".join(annotations["volcano.sh/gpu-index"].split(","))
    devices = decode_pod_devices(annotations.get("volcano.sh/devices-to-allocate", ""))
    return "; ".join(", ".join(f"{name} {memory}" for name, _, memory, _ in cards) for cards in devices)
