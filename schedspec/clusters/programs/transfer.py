"""Copy one URL to one file: the script of the process that download.py starts and may kill.

Imports no module of ours. Exit status 0 means that the file is complete. Otherwise one line on stderr states the
reason, and the status is ANSWERED if a web server refused.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path

ANSWERED = 3


def main(url: str, to: str) -> int:
    """Copy the URL. The file exists as soon as the answer begins."""
    try:
        with urllib.request.urlopen(url) as answer, Path(to).open("wb") as file:  # noqa: S310 - URLs are our constants
            while piece := answer.read1(1 << 18):
                file.write(piece)
            length = answer.headers.get("Content-Length")
            if length is not None and int(length) != file.tell():
                return _fail(f"only {file.tell()} of {length} bytes arrived")
    except urllib.error.HTTPError as error:
        error.close()
        return _fail(str(error), ANSWERED)
    except OSError as error:
        return _fail(str(getattr(error, "reason", None) or error))
    except Exception as error:  # noqa: BLE001 - garbage raises many kinds of exceptions in http.client
        return _fail(f"no answer of a web server ({type(error).__name__})")
    return 0


def _fail(why: str, status: int = 1) -> int:
    sys.stderr.write(" ".join(why.split()) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
