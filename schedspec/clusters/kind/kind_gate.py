"""Decide for the Makefile whether the features run on Kind here.

    python -m schedspec.clusters.kind.kind_gate auto|required|never [IMAGE]

Exit status 0: run the features. 3: do not run them. 1: they are required and cannot run. 2: unknown argument.
"""

from __future__ import annotations

import sys

from ..protocol import Settings

RUN, FAIL, SKIP = 0, 1, 3
_WHEN = ("auto", "required", "never")


def main(arguments: list[str]) -> int:
    when, image = (arguments[0] if arguments else "auto"), (arguments[1] if len(arguments) > 1 else None)
    if when not in _WHEN:
        sys.stderr.write(f"FEATURES_ON_KIND={when}: name one of: {', '.join(_WHEN)}\n")
        return 2
    if when == "never":
        sys.stderr.write("features on Kind: not requested\n")
        return SKIP
    from .cluster import why_not  # noqa: PLC0415 - connects to Docker

    why = why_not(Settings(kind="kind", kind_image=image or None))
    if why is None:
        return RUN
    must = when == "required"
    sys.stderr.write(f"features on Kind: {'required, and they cannot run' if must else 'not available'}\n{why}\n")
    return FAIL if must else SKIP


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
