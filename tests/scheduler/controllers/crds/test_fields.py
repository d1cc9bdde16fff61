"""Every field of the users' APIs is honoured, refused, or keeps its object waiting with the field's name."""

from __future__ import annotations

import pytest
import yaml

from schedspec.api.client import Api
from schedspec.api.errors import RejectedError
from tests.scheduler.controllers.crds.asking import create
from tests.scheduler.controllers.crds.conftest import CRDS
from tests.scheduler.controllers.crds.fields import TABLE, Case, cases, leaves, proofs
from tests.scheduler.controllers.job.test_refusals import UNHONOURED as OF_JOBS
from tests.scheduler.controllers.pytorchjob.test_training_ends import REFUSED as OF_TRAINING
from tests.scheduler.controllers.queue.test_queue import UNHONOURED as OF_QUEUES

CASES = list(cases())
NAMED = {"Job": OF_JOBS, "PyTorchJob": OF_TRAINING, "Queue": OF_QUEUES}
"""The fields that keep an object waiting in tests of the controllers, as the status names them."""


@pytest.mark.embedded
@pytest.mark.parametrize("case", [case for case in CASES if "refused" not in case.row], ids=str)
def test_an_accepted_field_is_kept(api: Api, case: Case) -> None:
    assert case.value_in(create(api, case.kind, case.body)) == case.row["value"]


@pytest.mark.embedded
@pytest.mark.parametrize("case", [case for case in CASES if "refused" in case.row], ids=str)
def test_an_unsupported_field_is_refused_by_name(api: Api, case: Case) -> None:
    with pytest.raises(RejectedError) as refused:
        create(api, case.kind, case.body)
    assert case.row["refused"] in refused.value.message
    assert "unknown field" not in refused.value.message, "non-strict clients would have it pruned silently"


@pytest.mark.parametrize("kind", TABLE)
def test_every_field_of_the_definition_is_in_the_table(kind: str) -> None:
    plural = {"Queue": "queue", "PodGroup": "podgroup", "Job": "job", "Command": "command", "PyTorchJob": "pytorchjob"}
    definition = yaml.safe_load((CRDS / f"{plural[kind]}.yaml").read_text("utf-8"))
    declared = set(leaves(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))
    listed = set(TABLE[kind])
    assert {path for path in declared if not any(_covers(path, one) for one in listed)} == set()
    assert {path for path in listed if not any(_covers(one, path) for one in declared)} == set()


def _covers(path: str, field: str) -> bool:
    """Whether a field has this path, lies in an open part of the schema below it, or is that of another replica."""
    field = field.replace(".Master.", ".Worker.")
    return field == path or field.startswith((f"{path}.", f"{path}[]"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_field_is_honoured_refused_or_inert(case: Case) -> None:
    known = {"seen", "refused", "inert"} & case.row.keys()
    assert len(known) == 1, "a field is honoured, refused, or has no effect"
    if "seen" in case.row:
        file, _, name = case.row["seen"].partition("::")
        assert name in proofs(file)


@pytest.mark.parametrize("case", [case for case in CASES if "named" in case.row], ids=str)
def test_a_field_that_another_definition_accepts_is_named_by_the_controller(case: Case) -> None:
    assert case.row["named"] in NAMED[case.kind]


@pytest.mark.parametrize("case", [case for case in CASES if "refused" in case.row and case.kind in NAMED], ids=str)
def test_every_refused_field_is_named_by_the_controller(case: Case) -> None:
    others = [one for one in CASES if one.path == case.path and one.kind == case.kind and "named" in one.row]
    assert others or case.path.endswith("managedBy"), "a job with another manager is left alone"
