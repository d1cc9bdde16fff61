"""A Chinese scenario is collected, selected and reported in the words of its feature."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

Run = Callable[..., pytest.RunResult]

STEPS = '''
from schedspec.gherkin.step_decorators import given as own_given, then as own_then

@own_given("有 {number:d} 个 Pod")
def _(number):
    """There are this many pods."""

@own_then('"{name}" 终将运行')
def _(name):
    """The assertion fails."""
    from schedspec.api.errors import HarnessError
    raise HarnessError("没有运行")
'''
FEATURE = """\
# language: zh-CN
功能: 训练
  规则: 低优先级先被抢占

    场景大纲: 优先级为 <谁> 的作业
      假如有 2 个 Pod
      那么"<谁>" 终将运行

      例子:
        | 谁  |
        | low |
        | 中  |
"""


def test_a_failure_is_reported_in_the_words_of_the_feature(specs: Run, pytester: pytest.Pytester) -> None:
    result = specs("--junitxml", "out/junit.xml", steps=STEPS, 训练=FEATURE)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(['训练.feature:7: 那么 "low" 终将运行', "*没有运行*"])
    folders = sorted(path.name for path in (pytester.path / "out/junit/scenarios").iterdir())
    assert len(folders) == 2
    assert all("优先级为" in name for name in folders)
    page = (pytester.path / "out/junit/report.html").read_text("utf-8")
    junit = (pytester.path / "out/junit.xml").read_text("utf-8")
    assert all("优先级为 low 的作业" in text for text in (page, junit))
    assert "低优先级先被抢占" in page
    links = re.findall(r'name="schedspec-report" value="[^"]*#([^"]+)"', junit)
    assert len({link for link in links if f'id="{link}"' in page}) == 2  # each row has an anchor of its own


def test_a_row_is_selected_by_its_chinese_name(specs: Run) -> None:
    result = specs("--collect-only", "-q", "训练.feature::优先级为 中 的作业", steps=STEPS, 训练=FEATURE)
    result.stdout.fnmatch_lines(["*低优先级先被抢占::优先级为 中 的作业"])
