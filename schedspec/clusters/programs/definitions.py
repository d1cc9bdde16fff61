"""Custom resource definitions of a program: those of the image that it came from, or of the source of its Go module.

A scheduler's programs and definitions must be of one version. The files that match a set of patterns are copied into
the cache once, so that a later run needs neither Go nor its module cache.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..paths import cache_root
from . import build
from .cache import Cache
from .pinned import Program


def definitions(program: Program, patterns: Sequence[str], *, downloads: bool = True) -> Path:
    """Return the folder that holds every file of the module that matches one of the patterns.

    Raises:
        BinaryError: Go is not installed or cannot download the module; without `downloads`, no cache has it.
    """
    root = cache_root() / "definitions"
    chosen = hashlib.sha256("\0".join(patterns).encode()).hexdigest()[:12]
    folder = root / f"{program.name}-{program.version}-{program.key}-{chosen}"
    if folder.is_dir():
        return folder
    if (entry := Cache(cache_root()).find(program)) and entry.definitions.is_dir():
        return entry.definitions
    source = build.module_source(program, downloads=downloads)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=root) as new:
        draft = Path(new) / "files"
        draft.mkdir()
        for pattern in patterns:
            for path in sorted(source.glob(pattern)):
                shutil.copyfile(path, draft / path.name)
        if not folder.is_dir():  # another process may have been faster
            draft.rename(folder)
    return folder
