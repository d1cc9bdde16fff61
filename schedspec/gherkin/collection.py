"""A feature file is a test module: pytest collects it as it is, and nobody writes a binding."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from . import bdd, step_check


def collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """What `pytest_collect_file` returns for `file_path`."""
    if file_path.suffix != ".feature":
        return None
    return FeatureFile.from_parent(parent, path=file_path)


class FeatureFile(pytest.Module):
    """One feature file; its items are its scenarios, by their plain names."""

    def _getobj(self) -> types.ModuleType:
        module = types.ModuleType(self.path.stem, doc=f"The scenarios of {self.path.name}.")
        module.__file__ = str(self.path)
        try:
            document = bdd.read_document(self.path)
        except bdd.UnreadableFeatureError as problem:
            self._refuse([step_check.Problem(problem.line, str(problem))])
        problems = list(step_check.check_document(document, marker_names(self.config)))
        if problems:  # what follows would trip over them
            self._refuse(problems)
        index = step_check.StepIndex(bdd.definitions_for(self))
        for node in bdd.scenarios_of(document):
            function = bdd.bind(self.path, node)
            problems += step_check.check_steps(function, index)
            setattr(module, node.name, function)
        if problems:
            self._refuse(problems)
        return module

    def _refuse(self, problems: list[step_check.Problem]) -> None:
        raise self.CollectError(step_check.tell(self.path, self.config.rootpath, problems))

    def funcnamefilter(self, name: str) -> bool:  # noqa: ARG002 - pytest's signature
        """Every function of the module is a scenario, whatever its name."""
        return True

    def classnamefilter(self, name: str) -> bool:  # noqa: ARG002 - pytest's signature
        """There are no classes in a feature."""
        return False


def marker_names(config: pytest.Config) -> set[str]:
    """The markers that are registered: the tags that may be used."""
    return {line.split(":")[0].split("(")[0].strip() for line in config.getini("markers")}
