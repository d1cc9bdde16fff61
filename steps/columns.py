"""Columns of the tables that several sentences share, and the scenario's model of card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from schedspec.api.errors import Unmet
from schedspec.api.kinds import DEFAULT_QUEUE, GPU, GPU_MEMORY, GPU_NUMBER, LEVELS, VGPU_CORES, VGPU_MEMORY, VGPU_NUMBER
from schedspec.gherkin import quantities, tables
from schedspec.gherkin.step_decorators import Thing
from schedspec.gherkin.things import CARD, DOMAIN, LABEL, MODEL, NODE, NODE_GROUP, POD, QUEUE, RESOURCE, TAINT
from schedspec.monitors.amounts import of_world, spoken
from schedspec.observe.history import Object
from schedspec.scenario import manifests

_AMOUNTS = ("guarantee", "deserved", "capability")
"""Amounts of a queue, the smallest first."""
_ANNOUNCED = {"shared_gpus": (GPU_MEMORY, GPU_NUMBER), "vgpus": (VGPU_NUMBER, VGPU_MEMORY, VGPU_CORES)}
"""Parameters of a node with shared cards, and the resources that its device plugin announces."""
SHARED_CARDS: dict[str, tables.Column] = {
    "gpu memory": (tables.of_resource(GPU_MEMORY), tables.mebibytes),
    "whole gpus": (tables.of_resource(GPU_NUMBER), tables.whole_amount),
    "vgpus": (tables.of_resource(VGPU_NUMBER), tables.whole_amount),
    "vgpu memory": (tables.of_resource(VGPU_MEMORY), tables.mebibytes),
    "vgpu cores": (tables.of_resource(VGPU_CORES), tables.whole_amount),
}
"""Columns of work that shares cards: parts of cards, whole cards, virtual GPUs with memory and cores of each."""
OF_NETWORK = ("required", "preferred", "partition_required")
"""Parameters of work that name a level of the network."""
_MODEL = 'name the model, or begin the scenario with: a cluster with N cards "MODEL"'


def _gpus_twice(row: tables.Row) -> Iterator[tuple[str, str]]:
    """Report a row that counts its devices as `gpus` and as `cards`."""
    if "cards" in row and GPU in resources_of(row):
        yield "", "cards and gpus are the same resource, nvidia.com/gpu: fill in one of the two columns"


def resources_of(row: tables.Row) -> dict[str, str]:
    """Return the amounts of the columns that have a resource's name."""
    found = row.get(tables.BY_RESOURCE, {})
    assert isinstance(found, dict)
    return found


def with_cards(row: tables.Row, model: str = "") -> tables.Row:
    """Return the row with its `gpus` as cards if their model is known: a card is a GPU of a named model.

    Args:
        row: A row of work or of nodes.
        model: The scenario's model, for a row that names none.
    """
    gpus = resources_of(row).get(GPU)
    if "card" not in row and model and ("cards" in row or gpus is not None):
        row = {**row, "card": model}
    if "card" not in row or gpus is None:
        return row
    rest = {name: amount for name, amount in resources_of(row).items() if name != GPU}
    return {**row, tables.BY_RESOURCE: rest, "cards": int(gpus)}


def with_quota_of(model: str, rows: Sequence[tables.Row], nodes: Iterable[Object]) -> Iterator[tables.Row]:
    """Yield rows of queues with amounts in place of parts of the scenario's nodes.

    A card quota that is a number counts cards of the scenario's model.

    Raises:
        Unmet: A part is no amount that a queue can have.
    """
    total = of_world(nodes)
    for row in rows:
        claimed = {name: cast("dict[str, str]", row[name]) for name in _AMOUNTS if name in row}
        try:
            found = {**row, **{name: quantities.of_nodes(amounts, total) for name, amounts in claimed.items()}}
        except ValueError as problem:
            raise Unmet(f"amounts that queue {row['name']} can have", str(problem)) from None
        quota = row.get("card_quota")
        yield {**found, "card_quota": {model: quota}} if isinstance(quota, int) else found


def cards_without_model(row: tables.Row) -> Iterator[tuple[str, str]]:
    """Report work that requests cards without a model, if the scenario names none either."""
    yield from _gpus_twice(row)
    if row.get("cards") and "card" not in row:
        yield MODEL, f"{row['cards']} cards without a model: {_MODEL}"


def _node_without_model(row: tables.Row) -> Iterator[tuple[str, str]]:
    yield from _gpus_twice(row)
    shared = [name for name in _ANNOUNCED if row.get(name)]
    if len(shared) > 1:
        yield "", "a node has one device plugin: fill in shared gpus or vgpus"
    if bool(shared) != ("shared_memory" in row):
        yield "", "shared gpus or vgpus need card memory (of each card), and card memory needs one of them"
    if row.get("cards") and "card" not in row:
        yield "", f"{row['cards']} cards without a model: fill in column `card`"
    if "card" in row and not (row.get("cards") or row.get("vgpus") or GPU in resources_of(row)):
        yield "", f"a node with a card {row['card']} needs the number of its cards: fill in cards, gpus or vgpus"


def _quota_without_model(row: tables.Row) -> Iterator[tuple[str, str]]:
    if isinstance(row.get("card_quota"), int):
        yield MODEL, f"a quota of {row['card_quota']} cards without a model: {_MODEL}"


def names_of_work(column: str, kind: str) -> tables.Shape:
    """Return the only column of a table that names workloads or pods, also those of further namespaces."""
    return tables.Shape({column: ("name", tables.in_namespace(tables.name))}, (column,), refers={column: kind})


def needed_by_work(row: tables.Row) -> Iterator[Thing]:
    """Yield what a row of work needs of the cluster: a queue, and a node with its resources and model of card."""
    row = with_cards(row)
    yield QUEUE, str(row.get("queue", DEFAULT_QUEUE))
    yield from ((RESOURCE, name) for name in resources_of(row))
    if row.get("cards") or cast("dict[str, object]", row.get("master", {})).get("gpus"):
        yield RESOURCE, GPU
    yield from ((CARD, model) for model in str(row.get("card", "")).split("|") if model)
    yield from ((TAINT, key) for key in cast("list[str]", row.get("tolerates", [])))
    selector = cast("dict[str, str]", row.get("node_selector", {}))
    yield from ((LABEL, f"{key}={value}") for key, value in selector.items())
    yield from ((DOMAIN, str(row[column])) for column in OF_NETWORK if column in row)


def amounts_needed(*columns: str) -> Callable[[tables.Row], Iterator[Thing]]:
    """Return what the amounts of these columns need of the cluster: nodes with their resources."""
    return lambda row: ((RESOURCE, name) for column in columns for name in cast("dict[str, str]", row.get(column, {})))


def _needed_by_queue(row: tables.Row) -> Iterator[Thing]:
    if "parent" in row:
        yield QUEUE, str(row["parent"])
    yield from amounts_needed(*_AMOUNTS)(row)
    quota = row.get("card_quota")
    yield from ((CARD, model) for model in (quota if isinstance(quota, dict) else ()))
    groups = cast("dict[str, list[str]]", row.get("affinity", {}))
    yield from ((NODE_GROUP, group) for named in groups.values() for group in named)


def _quantities(row: tables.Row, name: str) -> Mapping[str, Decimal]:
    found = row.get(name)
    given = found.items() if isinstance(found, dict) else ()
    return {resource: tables.amount(text) for resource, text in given if not text.endswith(" of the")}


def _queue_flaws(row: tables.Row) -> Iterator[tuple[str, str]]:
    """Report contradictions in a row of queues."""
    yield from _quota_without_model(row)
    for low, high in combinations(_AMOUNTS, 2):
        less, more = _quantities(row, low), _quantities(row, high)
        for resource in sorted(less.keys() & more.keys()):
            if less[resource] > more[resource]:
                given = {name: row[name] for name in (low, high)}
                values = [str(amounts[resource]) for amounts in given.values() if isinstance(amounts, dict)]
                yield "", f"{low} {resource} {values[0]} is above {high} {resource} {values[1]}"


def _tree_flaws(rows: Sequence[tables.Row]) -> Iterator[tables.Flaw]:
    """Report the child that has more capability than its parent, or with which all children deserve more."""
    for parent in rows:
        children = [(at, row) for at, row in enumerate(rows, 1) if row.get("parent", "") == parent.get("name")]
        for column in _AMOUNTS:
            for resource, most in _quantities(parent, column).items():
                total = Decimal(0)
                for at, row in children:
                    own = _quantities(row, column).get(resource, Decimal(0))
                    total = own if column == "capability" else total + own
                    if total > most:
                        who = "" if total == own else "all children together: "
                        limit = f"{spoken(resource, most)} of parent {parent['name']}"
                        yield at, f"{who}{column} {spoken(resource, total)} is above {limit}"
                        break


def _capacity(row: tables.Row) -> tables.Amounts:
    """Return the capacity of a node."""
    texts = {name: str(row[name]) for name in ("cpu", "memory") if name in row} | resources_of(row)
    texts |= {GPU: str(row["cards"])} if "cards" in row else {}
    return {name: tables.amount(text) for name, text in texts.items()}


NODES = tables.Shape(
    {
        "node": ("name", tables.name),
        "cpu": ("cpu", tables.above_zero(tables.cpus)),
        "memory": ("memory", tables.above_zero(tables.memory)),
        "gpus": (tables.of_resource(GPU), tables.whole_amount),
        "cards": ("cards", tables.count),
        "card": ("card", tables.word),
        "pods": ("pods", tables.above_zero(tables.count)),
        "shared gpus": ("shared_gpus", tables.count),
        "vgpus": ("vgpus", tables.count),
        "card memory": ("shared_memory", tables.mebibytes),
        **{level: (level, tables.name) for level in LEVELS},
        "group": ("group", tables.name),
        "labels": ("labels", tables.labels),
        "taints": ("taints", tables.taints),
    },
    required=("node", "cpu", "memory"),
    judge=_node_without_model,
    unique="node",
    provides=_capacity,
)


def card_quota(text: str) -> int | dict[str, int]:
    """Parse `8` of the scenario's model, or `NVIDIA-A100 2, NVIDIA-L40 4`. Raises ValueError."""
    if text.isdecimal():
        return int(text)
    return {model: tables.count(number) for model, number in tables.claims(text).items()}


QUEUES = tables.Shape(
    {
        "queue": ("name", tables.name),
        "parent": ("parent", tables.name),
        "weight": ("weight", tables.whole),
        "priority": ("priority", tables.whole),
        "capability": ("capability", quantities.amounts),
        "deserved": ("deserved", quantities.amounts),
        "guarantee": ("guarantee", quantities.amounts),
        "reclaimable": ("reclaimable", tables.yes),
        "card quota": ("card_quota", card_quota),
        "node groups": ("affinity required", tables.keys),
        "preferred node groups": ("affinity preferred", tables.keys),
        "avoided node groups": ("affinity avoided", tables.keys),
    },
    required=("queue",),
    judge=_queue_flaws,
    judge_all=_tree_flaws,
    unique="queue",
    needs=_needed_by_queue,
    settings=frozenset(
        (
            *("parent", "weight", "priority", "capability", "deserved", "guarantee", "reclaimable", "card quota"),
            *("node groups", "preferred node groups", "avoided node groups"),
        )
    ),
    parent="parent",
    reserves=lambda row: _quantities(row, "guarantee"),
)
PODS = names_of_work("pod", POD)
QUEUE_CHANGES = replace(QUEUES, refers={"queue": QUEUE})
_CLAIMS = {name: (name, tables.claims) for name in _AMOUNTS}
QUEUE_CLAIMS = replace(
    QUEUES,
    columns={**QUEUES.columns, **_CLAIMS},
    judge=_quota_without_model,
    settings=frozenset(),
    parent="",
    judge_all=tables.one_row,
    reserves=tables.nowhere,
)
"""Columns of one queue that the API server may refuse: its amounts may be invalid."""


def _labels_of(row: tables.Row) -> dict[str, str]:
    """Return the labels of a node: those of its cells, its name, its model of card and its place in the network."""
    own = {"kubernetes.io/hostname": "name", "nvidia.com/gpu.product": "card", "nvidia.com/gpu.count": "cards"}
    own |= {label: level for level, label in LEVELS.items()}
    given = cast("dict[str, str]", row.get("labels", {}))
    return {label: str(row[parameter]) for label, parameter in own.items() if parameter in row} | given


def nodes_made(_: Mapping[str, Any], rows: Sequence[tables.Row]) -> list[Thing]:
    """Return the nodes of a table, and their resources and models of card."""
    nodes = [(NODE, str(row.get("name", "*"))) for row in rows]
    cards = [(RESOURCE, GPU) for row in rows if row.get("cards")]
    cards += [
        (RESOURCE, resource) for row in rows for name in _ANNOUNCED if row.get(name) for resource in _ANNOUNCED[name]
    ]
    named = [(RESOURCE, name) for row in rows for name in resources_of(row)]
    found = [taint for row in rows for taint in cast("list[dict[str, str]]", row.get("taints", []))]
    named += [(TAINT, taint["key"]) for taint in found]
    labels = [pair for row in rows for pair in _labels_of(row).items()]
    named += [(LABEL, f"{key}={value}") for key, value in labels]
    named += [(DOMAIN, level) for level in LEVELS for row in rows if level in row]
    named += [(NODE_GROUP, str(row["group"])) for row in rows if "group" in row]
    return [*nodes, *cards, *named, *((CARD, str(row["card"])) for row in rows if "card" in row)]


def queues_made(_: Mapping[str, Any], rows: Sequence[tables.Row]) -> list[Thing]:
    """Return the queues of a table."""
    return [(QUEUE, str(row.get("name", "*"))) for row in rows]


@dataclass
class Beside:
    """Finds a file that a sentence names: beside the feature, in the root of the run, or in the working directory."""

    folders: Sequence[Path]

    def __call__(self, name: str) -> Path:
        """Return the path of the file. Raises ManifestError."""
        return manifests.find(name, self.folders)


@dataclass
class Cards:
    """The model of card of this scenario's cluster; empty if no sentence has named one."""

    model: str = ""
