"""A folder of `--scheduler-binaries` that lacks a part is refused by the part's name, before anything boots."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from schedspec.clusters.programs.definitions import definitions
from schedspec.clusters.programs.pinned import program
from schedspec.clusters.protocol import BinaryError
from schedspec.schedulers import ADAPTERS, Adapter
from schedspec.schedulers.volcano import DEFINITIONS, PROGRAMS, WATCHED

NAMED = [adapter for adapter in ADAPTERS.values() if adapter.programs]
PARTS = [
    pytest.param(adapter, part, id=f"{adapter.name} {part}")
    for adapter in NAMED
    for part in (*adapter.programs, *adapter.watched)
]


def complete(folder: Path, adapter: type[Adapter]) -> Path:
    """Fill a folder with all that the adapter's newest version needs; two definitions share a file."""
    folder.mkdir()
    for name in adapter.programs:
        (folder / name).write_text("\n".join(adapter.watched.values()))
        (folder / name).chmod(0o755)
    if adapter.watched:
        (folder / "crds").mkdir()
    for number, name in enumerate(adapter.watched):
        with (folder / "crds" / f"{number // 2}.yaml").open("a") as file:
            yaml.safe_dump_all(
                [{"kind": "CustomResourceDefinition", "metadata": {"name": name}}], file, explicit_start=True
            )
    return folder


@pytest.mark.parametrize("adapter", NAMED)
def test_a_complete_folder_lacks_nothing(adapter: type[Adapter], tmp_path: Path) -> None:
    assert adapter().missing_parts(complete(tmp_path / "f", adapter)) == []


@pytest.mark.parametrize(("adapter", "part"), PARTS)
def test_every_missing_part_is_named(adapter: type[Adapter], part: str, tmp_path: Path) -> None:
    folder = complete(tmp_path / "f", adapter)
    if part in adapter.programs:
        (folder / part).chmod(0o644)
        assert adapter().missing_parts(folder) == [f"program {part}"]
        return
    for file in (folder / "crds").iterdir():
        file.write_text(file.read_text().replace(f"name: {part}\n", "name: other.example.test\n"))
    assert adapter().missing_parts(folder) == [f"{part} in crds/"]


def test_volcano_waits_without_definitions_so_that_its_folder_needs_them(tmp_path: Path) -> None:
    folder = complete(tmp_path / "f", ADAPTERS["volcano"])
    for file in (folder / "crds").iterdir():
        file.unlink()
    (folder / "crds").rmdir()
    assert ADAPTERS["volcano"]().missing_parts(folder) == ["folder crds/ with the definitions of that version"]
    (folder / "crds").write_text("")
    assert ADAPTERS["volcano"]().missing_parts(folder) == ["folder crds/ with the definitions of that version"]


@pytest.mark.parametrize("content", [b"kind: [", b"\xff\xfe", b"kind: CustomResourceDefinition\nmetadata:\n  name: 'x"])
def test_a_definition_that_was_cut_off_is_named_by_its_file(tmp_path: Path, content: bytes) -> None:
    folder = complete(tmp_path / "f", ADAPTERS["volcano"])
    (folder / "crds" / "0.yaml").write_bytes(content)
    assert "YAML in crds/0.yaml" in ADAPTERS["volcano"]().missing_parts(folder)


def test_a_version_that_does_not_watch_a_kind_needs_no_definition_of_it(tmp_path: Path) -> None:
    folder = complete(tmp_path / "f", ADAPTERS["volcano"])
    for file in (folder / "crds").iterdir():
        file.write_text(file.read_text().replace("name: hypernodes.", "name: other."))
    assert ADAPTERS["volcano"]().missing_parts(folder) == ["hypernodes.topology.volcano.sh in crds/"]
    for name in PROGRAMS:
        (folder / name).write_text("volcano.sh/volcano/pkg/controllers/job")
    assert ADAPTERS["volcano"]().missing_parts(folder) == []


def test_the_pinned_module_of_volcano_has_every_definition_that_is_asked_for() -> None:
    try:
        folder = definitions(program(PROGRAMS[0]), DEFINITIONS, downloads=False)
    except BinaryError as problem:
        pytest.skip(str(problem))
    names = {yaml.safe_load(file.read_text())["metadata"]["name"] for file in folder.glob("*.yaml")}
    assert set(WATCHED) <= names
