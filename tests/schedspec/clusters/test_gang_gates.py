"""Kind and embedded clusters enable gang scheduling alike, for each version of Kubernetes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from schedspec.clusters.kwok_config import GANG_GATES
from schedspec.clusters.programs.pinned import kubernetes_versions

CONFIGS = Path(__file__).parents[3] / "kind-config"
FILES = {"1.36": "gang-1.36.yaml", "1.37": "gang.yaml"}


@pytest.mark.parametrize("version", GANG_GATES)
def test_a_configuration_of_kind_sets_the_gates(version: str) -> None:
    config = yaml.safe_load((CONFIGS / FILES[version]).read_text("utf-8"))
    gates = GANG_GATES[version]
    assert config["featureGates"] == dict.fromkeys(gates.features, True)
    assert config["runtimeConfig"] == dict.fromkeys(gates.apis, "true")


def test_every_pinned_version_has_gates() -> None:
    assert set(kubernetes_versions()) == set(GANG_GATES)
