"""The options of a run: how users write them (`flags`), how they are read and checked, and the result (`Options`).

Each option exists on the command line and in the ini file; all are in one group of `pytest --help`.
"""

from .flags import FLAGS, READ_BY, declare, ini_is_ours, ini_name
from .reading import Options, home, read

__all__ = ["FLAGS", "READ_BY", "Options", "declare", "home", "ini_is_ours", "ini_name", "read"]
