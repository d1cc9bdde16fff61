"""Patches of the Kubernetes API."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from schedspec.virtual.cluster import merge

MERGES = yaml.safe_load("""
- [null removes a field, {a: 1, b: 2}, {b: null}, {a: 1}]
- [maps merge, {a: {b: 1}}, {a: {c: 2}}, {a: {b: 1, c: 2}}]
- [lists are replaced, {conditions: [{type: A}]}, {conditions: [{type: B}]}, {conditions: [{type: B}]}]
""")
KEYED = yaml.safe_load("""
- [conditions merge by type, {conditions: [{type: A, status: x}]}, {conditions: [{type: B}, {type: A, status: y}]},
   {conditions: [{type: A, status: y}, {type: B}]}]
- [other lists are replaced, {args: [1, 2]}, {args: [3]}, {args: [3]}]
""")
APPLIES = yaml.safe_load("""
- [a field that is no longer wanted is removed, {a: 1, b: 2}, {b: 2}, {c: 3}, {a: 1, c: 3}]
- [fields of other managers are kept, {s: {mine: 1, theirs: 2}}, {s: {mine: 1}}, {s: {}}, {s: {theirs: 2}}]
- [conditions of other managers are kept, {conditions: [{type: A}, {type: B}]}, {conditions: [{type: B}]},
   {conditions: []}, {conditions: [{type: A}]}]
- [a field that was never applied is merged, {a: {b: 1}}, {}, {a: {c: 2}}, {a: {b: 1, c: 2}}]
""")
PATCHES = yaml.safe_load("""
- [a field is set exactly, {spec: {d: {cpu: 1, x: 2}}}, [{op: add, path: /spec/d, value: {cpu: 4}}],
   {spec: {d: {cpu: 4}}}]
- [an item of a list, {t: [{r: 1}, {r: 2}]}, [{op: replace, path: /t/1/r, value: 5}], {t: [{r: 1}, {r: 5}]}]
- [the end of a list, {t: [1]}, [{op: add, path: /t/-, value: 2}], {t: [1, 2]}]
- [escaped names, {a: {}}, [{op: add, path: /a/x~1y, value: 1}], {a: {x/y: 1}}]
- [an item before others, {t: [1, 3]}, [{op: add, path: /t/1, value: 2}], {t: [1, 2, 3]}]
- [an empty value, {a: 1}, [{op: add, path: /a, value: null}], {a: null}]
- [removal, {a: 1, b: 2}, [{op: remove, path: /a}], {b: 2}]
- [removal of an item, {t: [1, 2]}, [{op: remove, path: /t/0}], {t: [2]}]
""")


@pytest.mark.parametrize(("before", "patch", "after"), [it[1:] for it in MERGES], ids=[it[0] for it in MERGES])
def test_merge_patch(before: Any, patch: Any, after: Any) -> None:
    untouched = copy.deepcopy(before)
    assert merge.merge(before, patch) == after
    assert before == untouched


@pytest.mark.parametrize(("before", "patch", "after"), [it[1:] for it in KEYED], ids=[it[0] for it in KEYED])
def test_strategic_merge_patch(before: Any, patch: Any, after: Any) -> None:
    assert merge.merge(before, patch, keyed=True) == after


@pytest.mark.parametrize(("target", "was", "now", "after"), [it[1:] for it in APPLIES], ids=[it[0] for it in APPLIES])
def test_server_side_apply(target: Any, was: Any, now: Any, after: Any) -> None:
    assert merge.apply(target, was, now) == after


@pytest.mark.parametrize(("before", "patch", "after"), [it[1:] for it in PATCHES], ids=[it[0] for it in PATCHES])
def test_json_patch(before: Any, patch: Any, after: Any) -> None:
    untouched = copy.deepcopy(before)
    assert merge.json_patch(before, patch) == after
    assert before == untouched
