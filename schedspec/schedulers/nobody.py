"""`--scheduler none`: a scheduler runs in the cluster already, with its operator's policy."""

from __future__ import annotations

from typing import ClassVar

from .adapter import Adapter, Site


class Nobody(Adapter):
    """No scheduler is started. Scenarios that name a policy run with the policy in force."""

    name: ClassVar[str] = "none"

    def version(self, site: Site) -> str:
        del site
        return ""

    def scheduler(self, site: Site) -> None:
        del site

    def starts(self, site: Site) -> str:
        del site
        return ""
