"""`--scheduler none`: a scheduler runs in the cluster already, and its policy is its operator's."""

from __future__ import annotations

from typing import ClassVar

from .adapter import Adapter, Site


class Nobody(Adapter):
    """Scenarios that name a policy are judged by whatever is in force."""

    name: ClassVar[str] = "none"

    def version(self, site: Site) -> str:
        del site
        return ""

    def scheduler(self, site: Site) -> None:
        del site

    def starts(self, site: Site) -> str:
        del site
        return ""
