"""Play cases on a cluster with any scheduler, each round in one run of pytest, and judge them by their records.

The monitors that apply to the scheduler judge every scenario. Two promises are checked as well:

* `told`: each job runs, or the scheduler publishes why it waits.
* `owed`: if only one job waits, and it fits into idle capacity that its queue deserves, it runs within the usual time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...api.kinds import Kind
from ...report.record import UID, Judgement, Moment, ScenarioRecord
from ...report.record import Story as ObjectStory
from ..reduce.case import Case
from ..reduce.confirm import FeatureRun, Site, run
from ..reduce.live import OWED, TOLD, Live, thens_of
from ..reduce.play import NOT_PLAYED, SettledState, Story
from .judge import CaseFinding, CaseJudgement
from .owed import owed_jobs
from .promises import alive_jobs
from .reach import reach_of
from .rounds import Seed, case_of
from .vocabulary import Vocabulary

ROUND = 10
"""Number of scenarios in one run of pytest."""
_DECIDED = re.compile(r'^"([^"]+)" runs or is refused$')
_RUNS = re.compile(r'^"([^"]+)" runs$')
_NAMES = re.compile(r'"[^"]*"')


class OnCluster:
    """Play the cases of a round on a cluster."""

    size = ROUND

    def __init__(self, site: Site, policies: Mapping[str, str], vocabulary: Vocabulary, folder: Path) -> None:
        self._site, self._policies, self._vocabulary = site, policies, vocabulary
        self._live = Live(site, folder, 0)

    def play(self, seeds: Sequence[Seed]) -> Iterable[tuple[Case, CaseJudgement]]:
        cases = {f"seed-{seed[0]}": case_of(seed, self._policies, self._vocabulary) for seed in seeds}
        ran = run([self._live.write(case, name, _thens(case)) for name, case in cases.items()], self._site)
        for name, case in cases.items():
            record = next((record for record in ran.records if Path(record.feature_file).stem == name), None)
            if record is None or not _is_judged(record):
                yield case, CaseJudgement(unjudged=_why_unjudged(name, record, ran))
                continue
            findings = [*judge_record(case, record)]
            findings += [] if findings else self._owed(case, record, name)
            once = {finding.name: finding for finding in reversed(findings)}
            yield case, CaseJudgement([*once.values()][::-1], reach_of(case, NOT_PLAYED))

    def _owed(self, case: Case, record: ScenarioRecord, name: str) -> Iterator[CaseFinding]:
        """Play the case again with a sentence that waits for the owed job; yield the findings."""
        for job in _owed_jobs(case, record):
            waiting_case = replace(case, subject=job)
            again = run([self._live.write(waiting_case, f"{name}-owed", thens_of(waiting_case, OWED))], self._site)
            yield from (finding for record in again.records for finding in judge_record(waiting_case, record))

    def close(self) -> None:
        """Leave the cluster for the next run."""


def names_in(case: Case, ran: FeatureRun) -> set[str]:
    """Return the signatures of the findings in a run of a case."""
    return {finding.name for record in ran.records for finding in judge_record(case, record)}


def judge_record(case: Case, record: ScenarioRecord) -> Iterator[CaseFinding]:
    """Yield the findings of monitors in a scenario, and the promise that its failed sentence shows to be broken."""
    by = f"{record.scheduler.name} {record.scheduler.version}".rstrip()
    for found in record.findings:
        name = f"{found.monitor}: {_act_of(found, record)}"
        about = UID.sub("", found.about).rpartition("/")[2]
        yield _finding(name, f"{about}: {found.text}", case, _job_of(found, record), by)
    failed = _failed_sentence(record)
    if match := _DECIDED.search(failed):
        yield _finding(TOLD, f"{match[1]} neither runs nor is refused", case, match[1], by)
    elif (match := _RUNS.search(failed)) and match[1] in _owed_jobs(case, record):
        text = f"{match[1]} waits although idle capacity remains to which its queue is entitled"
        yield _finding(OWED, text, case, match[1], by)


def _finding(name: str, text: str, case: Case, job: str, by: str) -> CaseFinding:
    about = replace(case, subject=job if any(work.name == job for work in case.jobs) else "")
    return CaseFinding(name, text, about, about, tuple(thens_of(about, name)), by)


def _is_judged(record: ScenarioRecord) -> bool:
    """Whether a scenario passed, a monitor found something, or a sentence `"…" runs or is refused` failed."""
    failed = _failed_sentence(record)
    return record.verdict == "passed" or bool(record.findings or _DECIDED.search(failed))


def _why_unjudged(name: str, record: ScenarioRecord | None, ran: FeatureRun) -> str:
    """Return why a scenario was not judged, without its names, so that equal causes count together."""
    if failed := _failed_sentence(record):
        return f"a step failed: {_NAMES.sub('…', failed)}"
    row = next((result for result in ran.results if Path(result.feature).stem == name), None)
    text = (row.why if row is not None else ran.problem) or (record.headline if record is not None else "")
    return _NAMES.sub("…", text.splitlines()[0] if text else "no record")


def _failed_sentence(record: ScenarioRecord | None) -> str:
    failed = record.failed_sentence if record is not None else None
    return failed.text if failed is not None else ""


def _thens(case: Case) -> list[str]:
    return [f'"{work.name}" runs or is refused' for work in alive_jobs(case)]


def _act_of(found: Judgement, record: ScenarioRecord) -> str:
    """Return the action of the eviction that a monitor found, `evict` if the scheduler names none, or `bind`."""
    about = found.about.rpartition("/")[2]
    acts = [act for act in record.acts if about in (act.pod, act.group)]
    act = min(acts, key=lambda act: abs(act.at - found.at), default=None)
    return "bind" if act is None or act.act == "bind" else act.action or act.act


def _job_of(found: Judgement, record: ScenarioRecord) -> str:
    """Return the job that a finding is about; empty if it is about a queue."""
    about = found.about.rpartition("/")[2]
    return next((_workload(story.moments[-1]) for story in _pods(record) if about in (story.name, _group(story))), "")


def _owed_jobs(case: Case, record: ScenarioRecord) -> list[str]:
    """Return the job that waits at the end although its queue deserves idle capacity; none if another job waits too."""
    placed: dict[str, dict[str, str]] = {}
    for story in _pods(record):
        last = [moment for moment in story.moments if not moment.cleanup][-1:]
        for moment in last:
            if moment.change != "gone" and moment.state.get("node") and moment.state.get("phase") != "Succeeded":
                placed.setdefault(_workload(moment), {})[story.name] = str(moment.state["node"])
    waiting = [work for work in alive_jobs(case) if len(placed.get(work.name, ())) < work.pods]
    owed = [work.name for work in owed_jobs(case, Story(settled=[SettledState(placed, {})]))]
    return owed if len(waiting) == 1 else []


def _pods(record: ScenarioRecord) -> list[ObjectStory]:
    return [story for story in record.objects if story.kind == Kind.POD]


def _workload(moment: Moment) -> str:
    return str(moment.state.get("workload", ""))


def _group(story: ObjectStory) -> str:
    return str(story.moments[-1].state.get("group", ""))
