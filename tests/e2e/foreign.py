"""The files of a foreign repository with its own pytest-bdd suite, options, conftest, steps and templates.

It has everything that an earlier version of the wheel broke: options of pytest in pyproject.toml (a pytest.ini would
hide them), a conftest with options and fixtures of the same names as ours, a folder `steps/` whose modules import
missing packages, a folder `templates/`, and feature files that its own test modules bind. Warnings are errors.
"""

from __future__ import annotations

FILES = {
    "README.md": "# A shop\n",
    "pyproject.toml": """\
[project]
name = "shop"
version = "1"
dependencies = ["flask"]

[dependency-groups]
dev = ["pytest<9", "pytest-bdd==8.1.0", "pytest-xdist"]

[tool.pytest.ini_options]
addopts = "--import-mode=importlib --strict-markers --strict-config -ra"
testpaths = ["tests"]
pythonpath = ["."]
bdd_features_base_dir = "tests/features/"
markers = ["smoke: a quick one"]
filterwarnings = ["error"]
""",
    ".gitignore": "__pycache__/\n*.pyc\nwheels/\n.venv",
    "conftest.py": """\
import pytest


def pytest_addoption(parser):
    parser.addoption("--cluster", default="staging", help="where the shop runs")
    parser.addoption("--out", default="reports")
    parser.addini("cluster", "the same", default="")


@pytest.fixture
def world(request):
    return {"cluster": request.config.getoption("--cluster"), "bought": []}


@pytest.fixture
def history(world):
    return world["bought"]


@pytest.fixture
def live():
    return False


@pytest.fixture
def expect():
    return lambda found: found or pytest.fail("nothing")
""",
    "steps/__init__.py": "",
    "steps/browser.py": "import a_browser_driver_that_only_the_nightly_job_installs\n",
    "steps/shop.py": "raise RuntimeError('only the deployed shop imports this')\n",
    "scheduler/__init__.py": "NAME = 'the scheduler of the shop'\n",
    "templates/queue.yaml.j2": "name: {{ shop.queue }}\n",
    "templates/mail.html.j2": "<p>{{ order }}</p>\n",
    "policies/returns.yaml": "days: 30\n",
    "tests/features/checkout.feature": """\
@smoke
Feature: Checkout
  Scenario: One book
    Given a basket
    When I buy "a book"
    Then "a book" runs

  Scenario: Two books
    Given a basket
    When I buy "a book"
    And I buy "another"
    Then nothing is evicted
""",
    "tests/features/planned.feature": """\
Feature: Planned, and bound by nobody yet
  Scenario: Gift cards
    Given a gift card
    Then it is accepted
""",
    "tests/bdd/conftest.py": """\
from pytest_bdd import given, parsers, then, when


@given("a basket")
def _(world):
    world["bought"].clear()


@when(parsers.parse('I buy "{name}"'))
def _(history, name):
    history.append(name)


@then(parsers.parse('"{name}" runs'))
def _(history, expect, name):
    expect(name in history)


@then("nothing is evicted")
def _(history):
    assert history == ["a book", "another"]
""",
    "tests/bdd/test_checkout.py": 'from pytest_bdd import scenarios\n\nscenarios("checkout.feature")\n',
    "tests/unit/test_checkout.py": """\
import os
import sys
import threading

import pytest
from pytest_bdd.compat import get_fixture_names

import scheduler


def test_the_options_of_the_project_are_in_force(request, world):
    assert request.config.getini("bdd_features_base_dir") == "tests/features/"
    assert world["cluster"] == "staging"
    assert scheduler.NAME == "the scheduler of the shop"


def test_nothing_else_is_imported_or_started():
    assert not any(name.startswith(("kubernetes", "numpy", "steps.")) for name in sys.modules)
    assert {name for name in sys.modules if name.startswith("schedspec")} <= {"schedspec", "schedspec.plugin"}
    assert not any("schedspec" in entry for entry in sys.path if "site-packages" not in entry)
    assert not any(thread.name.startswith("schedspec") for thread in threading.enumerate())


def test_no_option_fixture_or_marker_is_added(request):
    fixtures = get_fixture_names(request.session._fixturemanager)
    assert "world" in fixtures
    assert not any(name.startswith("schedspec") for name in fixtures)
    assert not any("schedspec" in line or "embedded" in line for line in request.config.getini("markers"))
    assert not any(name.startswith("schedspec") for name in vars(request.config.option))
    assert not os.path.exists("out")


@pytest.mark.xfail(reason="known")
def test_a_known_bug():
    assert 1 + 1 == 3
""",
    "tests/integration/test_checkout.py": "def test_a_module_of_the_same_name():\n    assert True\n",
}


def with_setup_cfg(files: dict[str, str]) -> dict[str, str]:
    """Return the same repository with its options in setup.cfg, and with pytest's default import mode."""
    others = {name: text for name, text in files.items() if not name.startswith("tests/integration")}
    others["pyproject.toml"] = others["pyproject.toml"].partition("[tool.pytest")[0]
    others["setup.cfg"] = """\
[tool:pytest]
addopts = --strict-markers --strict-config -ra
testpaths = tests/bdd tests/unit
bdd_features_base_dir = tests/features/
markers =
    smoke: a quick one
filterwarnings = error
"""
    del others["tests/unit/test_checkout.py"]
    others["tests/unit/test_basket.py"] = files["tests/unit/test_checkout.py"]
    return others
