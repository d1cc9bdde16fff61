"""What a plugin is: one class, of which a new instance serves each cycle.

The one rule: the class says all that others need to know of it (its name, hooks, switches and arguments); importing its
module registers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..policy import schema
from ..policy.hooks import Hook, hooks_of
from ..policy.model import PluginOption
from ..policy.schema import Argument, PluginRule

if TYPE_CHECKING:
    from .session import Session

PLUGINS: dict[str, type[Plugin]] = {}
"""The plugins whose modules have been imported, by the name that a policy calls them."""


class Plugin:
    """Base of all plugins; a class that sets ``name`` is one.

    ``arguments`` are what a policy file may say to the plugin, with their defaults; ``families`` those whose name ends
    in a name of the user's; ``switches`` are those that it looks at itself, beside those of its hooks. A file that
    sets one of ``refused`` is refused, with text and remedy.
    """

    name: ClassVar[str] = ""
    hooks: ClassVar[tuple[Hook, ...]] = ()
    switches: ClassVar[frozenset[str]] = frozenset()
    arguments: ClassVar[Mapping[str, Argument]] = {}
    families: ClassVar[Mapping[str, Argument]] = {}
    refused: ClassVar[Mapping[str, tuple[str, str]]] = {}
    decides_queues: ClassVar[bool] = False
    """Whether it decides what queues may have: a policy may name only one that does."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.hooks = hooks_of(cls)
        if "name" in vars(cls):
            PLUGINS[cls.name] = cls
            schema.PLUGINS[cls.name] = PluginRule(
                hooks=frozenset(hook.name for hook in cls.hooks),
                switches=cls.switches.union(hook.switch for hook in cls.hooks if hook.switch is not None),
                arguments=cls.arguments,
                families=cls.families,
                refused=cls.refused,
                decides_queues=cls.decides_queues,
            )

    def __init__(self, option: PluginOption) -> None:
        self.option = option

    def argument(self, name: str) -> Any:
        """What the policy says of an argument, or its default."""
        rule = schema.PLUGINS[self.name].argument(name)
        return self.option.arguments.get(name, None if rule is None else rule.default)

    def open(self, session: Session) -> None:
        """Compute, once a cycle, what the answers rest on."""
