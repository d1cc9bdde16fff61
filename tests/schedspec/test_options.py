"""The options of a run: command line, ini file, header, and errors with a remedy for invalid values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.clusters import Settings
from schedspec.options import READ_BY, Options
from schedspec.schedulers import Own

Run = Callable[..., pytest.RunResult]
FEATURE = "Feature: f\n  Scenario: s\n    Then all is well\n"
POLICIES = {
    "bad.yaml": b"actions: [allocate\n",
    "reclam.yaml": b"#\nactions: allocate, reclam\ntiers: [{plugins: [{name: gang}]}]\n",
    "bytes.yaml": b"actions: \xff\n",
}
"""Policies that the scheduler rejects."""

REFUSED = {
    "an unknown kind of cluster": (
        ["--cluster", "minikube"],
        ["unknown kind of cluster 'minikube'", "*--cluster", "*name one of: auto, *"],
    ),
    "an existing cluster without a context": (
        ["--cluster", "existing"],
        ["*needs the name of its context*", "*--kube-context", "*add --kube-context NAME*"],
    ),
    "a context without an existing cluster": (
        ["--kube-context", "prod"],
        ["*(prod) is only used with an existing cluster*", "*--kube-context", "*"],
    ),
    "a missing context": (
        ["--cluster", "existing", "--kube-context", "prod"],
        ["*no context is called 'prod'; there are: test", "*config", "*name one of them"],
    ),
    "nodes to adopt from our own cluster": (
        ["--adopt-nodes", "n1,n2"],
        [
            "*'n1,n2' is for an existing cluster, but the cluster of this run is 'auto'",
            "*--adopt-nodes*",
            "*--cluster existing*",
        ],
    ),
    "an unknown scheduler": (
        ["--scheduler", "/no/such/program --fast"],
        [
            "*'/no/such/program --fast' is neither a scheduler nor a program that can be run; schedulers are *",
            "*--scheduler (schedspec_scheduler *",
            "*name one of: schedspec, *MODULE:CLASS*",
        ],
    ),
    "a command with an open quote": (["--scheduler", "sh -c 'x"], ["*cannot be read as a command*", "*", "*"]),
    "a missing adapter": (
        ["--scheduler", "no.such:Thing"],
        ["*'no.such:Thing' cannot be imported*", "*", "*"],
    ),
    "a class that is not an adapter": (
        ["--scheduler", "json:JSONDecoder"],
        ["*'json:JSONDecoder' is not an adapter*"] + 2 * ["*"],
    ),
    "a scheduler in a cluster that cannot load images": (
        ["--scheduler-in-cluster", "--cluster", "embedded"],
        ["*--scheduler-in-cluster needs a Kind cluster: a cluster of kind embedded cannot load its image"],
    ),
    "another scheduler in the cluster": (
        ["--scheduler-in-cluster", "--scheduler", "none"],
        ["*'none' does not run in pods of a Kind cluster", "*--scheduler *", "*name schedspec, kueue or volcano"],
    ),
    "an image for our own scheduler": (
        ["--scheduler-image", "registry.example/mine:v1"],
        ["*'schedspec' gets its image from this checkout, not from --scheduler-image", "*", "*"],
    ),
    "one image for the two programs of Volcano": (
        ["--scheduler-image", "registry.example/vc-scheduler:v1", "--scheduler", "volcano"],
        ["*'volcano' has 2 images, in this order: vc-scheduler, vc-controller-manager; --scheduler-image names 1"],
    ),
    "an image for a cluster that cannot load images": (
        ["--scheduler-image", "registry.example/kueue:v1", "--scheduler", "kueue", "--cluster", "embedded"],
        ["*--scheduler-image needs a Kind cluster: a cluster of kind embedded cannot load its image"],
    ),
    "a policy that is no yaml": (
        ["--policy", "bad.yaml"],
        ["*rejects the policy of the run:", "*bad.yaml:2: *", "*--policy *", "*correct the file*"],
    ),
    "a policy with an unknown action": (
        ["--policy", "reclam.yaml"],
        ["*rejects the policy of the run:", "*reclam.yaml:2: actions: *did you mean reclaim*", "*--policy *", "*"],
    ),
    "a policy that is no text": (
        ["--policy", "bytes.yaml"],
        ["*rejects the policy of the run:", "*bytes.yaml: cannot read the file: *utf-8*", "*--policy *", "*"],
    ),
    "a JUnit report in place of a feature": (
        ["--junitxml", "f.feature"],
        ["*'f.feature' is a file of another kind, which the report would replace", "*--junitxml *", "*write NAME.xml"],
    ),
    "a run without pytest-bdd": (
        ["-p", "no:pytest-bdd"],
        ["pytest-bdd runs the sentences, and -p no:pytest-bdd leaves it out: remove the option"],
    ),
    "a missing policy": (["--policy", "no.yaml"], ["*no.yaml' is not a file", "*--policy *", "*"]),
    "a missing kind configuration": (
        ["--kind-config", "no.yaml"],
        ["*no.yaml' is not a file", "*--kind-config *", "*"],
    ),
    "a missing folder": (["--binaries", "no"], ["*no' is not a folder", "*--binaries *", "*"]),
    "a missing folder of the scheduler": (
        ["--scheduler-binaries", "no"],
        ["*no' is not a folder", "*--scheduler-binaries *", "*"],
    ),
    "a folder without the scheduler's programs": (
        ["--scheduler", "volcano", "--scheduler-binaries", "."],
        [
            "*' has no program vc-scheduler, program vc-controller-manager, folder crds/ *",
            "*--scheduler-binaries *",
            "*do next: put *",
        ],
    ),
    "programs of a scheduler in virtual time": (
        ["--scheduler-binaries", ".", "--cluster", "simulated"],
        ["*' is read by no cluster of kind 'simulated'", "*--scheduler-binaries *", "*leave --scheduler-binaries out*"],
    ),
    "messages in the place of a feature": (
        ["--cucumber-messages", "lent.feature"],
        ["*'lent.feature' does not end with .ndjson", "*--cucumber-messages *", "*write lent.ndjson: *"],
    ),
    "an unknown value of --record": (
        ["--record", "never"],
        ["*'never' is not known", "*--record *", "*name one of: always, failed"],
    ),
    "an unknown gang API": (
        ["--gang-api", "slurm"],
        ["*'slurm' is not a gang API of schedspec", "*--gang-api *", "*name one of: volcano, kubernetes"],
    ),
    "a gang API that the scheduler does not support": (
        ["--gang-api", "kubernetes", "--scheduler", "volcano"],
        ["*'kubernetes' is not a gang API of volcano", "*--gang-api *", "*name one of: volcano"],
    ),
    "a scale that is not a number": (
        ["--timeout-scale", "x"],
        ["*'x' is not a factor above 0", "*--timeout-scale *", "*"],
    ),
    "a scale of zero": (["--timeout-scale", "0"], ["*'0' is not a factor above 0", "*", "*"]),
}


@pytest.fixture(autouse=True)
def kubeconfig(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path_factory.mktemp("kube") / "config"
    path.write_text("apiVersion: v1\nkind: Config\ncontexts:\n- name: test\n  context: {cluster: c, user: u}\n")
    monkeypatch.setenv("KUBECONFIG", str(path))


@pytest.mark.parametrize(("arguments", "lines"), REFUSED.values(), ids=REFUSED)
def test_invalid_options_are_rejected_before_anything_starts(
    specs: Run, pytester: pytest.Pytester, arguments: list[str], lines: list[str]
) -> None:
    for name, policy in POLICIES.items():
        (pytester.path / name).write_bytes(policy)
    result = specs(*arguments, f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {lines[0].removeprefix('ERROR: ')}", *lines[1:]])


@pytest.mark.parametrize(
    ("named", "scenarios", "keeps"),
    [("", 19, True), ("", 20, False), ("always", 500, True), ("failed", 1, False)],
)
def test_a_small_run_keeps_the_recordings_of_passed_scenarios(named: str, scenarios: int, keeps: bool) -> None:
    given = Options(Settings(), Own(), None, None, 1.0, Path("out"), record=named)
    assert given.records(scenarios) is keeps


def test_an_unreadable_kubeconfig_is_refused(
    specs: Run, monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    path = pytester.path / "kubeconfig"
    path.write_text("{")
    monkeypatch.setenv("KUBECONFIG", str(path))
    result = specs("--cluster", "existing", "--kube-context", "prod", f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: the kubeconfig cannot be read: *", f"*{path}", "*set KUBECONFIG*"])


def test_the_header_shows_the_options_of_the_run(specs: Run) -> None:
    result = specs("--cluster", "embedded", "--scheduler", "none", "--timeout-scale", "2", "--keep-cluster", f=FEATURE)
    result.stdout.fnmatch_lines(["schedspec: cluster embedded, scheduler none, kept, timeouts x 2; reports in *"])


def test_the_header_names_another_scheduler(specs: Run) -> None:
    result = specs("--cluster", "embedded", "--scheduler", "sh -c 'my scheduler'", f=FEATURE)
    result.stdout.fnmatch_lines(["schedspec: cluster embedded, scheduler by sh -c 'my scheduler'; reports *"])


def test_options_can_be_set_in_the_ini_file(pytester: pytest.Pytester, specs: Run) -> None:
    specs(f=FEATURE)
    pytester.makeini(
        "[pytest]\nschedspec_cluster = embedded\nschedspec_timeout_scale = 3\nschedspec_keep_cluster = true"
    )
    result = pytester.runpytest_inprocess("-p", "schedspec.plugin")
    result.stdout.fnmatch_lines(["schedspec: cluster embedded, scheduler schedspec, kept, timeouts x 3; *"])


def test_the_command_line_takes_precedence_over_the_ini_file(pytester: pytest.Pytester, specs: Run) -> None:
    specs(f=FEATURE)
    pytester.makeini("[pytest]\nschedspec_cluster = kind")
    result = pytester.runpytest_inprocess("-p", "schedspec.plugin", "--cluster", "embedded")
    result.stdout.fnmatch_lines(["schedspec: cluster embedded, *"])


def test_reports_are_written_beside_the_junit_file(specs: Run) -> None:
    result = specs("--junitxml", "reports/features.xml", f=FEATURE)
    result.stdout.fnmatch_lines(["schedspec: *; reports in reports/features"])


@pytest.mark.parametrize("argument", ["--help", "--markers", "--fixtures", "--collect-only", "--version"])
def test_options_that_only_print_start_no_cluster(specs: Run, argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedspec.scenario.session.provide", lambda _: pytest.fail("a cluster was requested"))
    assert specs(argument, f=FEATURE).ret == 0


def test_scenarios_without_the_fixture_world_start_no_cluster(specs: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedspec.scenario.session.provide", lambda _: pytest.fail("a cluster was requested"))
    specs(f=FEATURE).assert_outcomes(passed=1)


def test_help_lists_the_options_in_one_group(specs: Run) -> None:
    lines = specs("--help", f=FEATURE).stdout.lines
    start = next(at for at, line in enumerate(lines) if line.startswith("schedspec: "))
    group = "\n".join(lines[start : start + 50])
    assert all(f"--{flag}" in group for flag in ("cluster", "kube-context", "reuse-cluster", "policy", "timeout-scale"))


def kinds_of_clusters() -> list[tuple[str, str, bool]]:
    """Return each option that only some kinds of clusters read, with each kind, and whether the kind reads it."""
    kinds = ("auto", "simulated", "embedded", "kind")
    return [(flag, kind, kind in ("auto", *readers)) for flag, readers in READ_BY.items() for kind in kinds]


@pytest.mark.parametrize(("flag", "kind", "is_read"), kinds_of_clusters())
def test_an_option_that_the_kind_of_cluster_never_reads_is_refused(
    pytester: pytest.Pytester, specs: Run, flag: str, kind: str, is_read: bool
) -> None:
    pytester.path.joinpath("file").touch()
    value = "file" if flag == "kind-config" else "."
    result = specs("--collect-only", f"--{flag}", value, "--cluster", kind, f=FEATURE)
    text = result.stdout.str() + result.stderr.str()
    assert (f"is read by no cluster of kind '{kind}'" in text) is not is_read


def test_an_option_of_the_ini_file_may_serve_another_kind_of_cluster(pytester: pytest.Pytester, specs: Run) -> None:
    specs(f=FEATURE)
    pytester.makeini("[pytest]\nschedspec_kind_image = own:v1")
    result = pytester.runpytest_inprocess("-p", "schedspec.plugin", "--cluster", "simulated")
    result.stdout.fnmatch_lines(["schedspec: cluster simulated, *node image own:v1; *"])


MISNAMED = {
    "templates/job.yml.j2": "job.yaml.j2",
    "templates/job.YAML.j2": "job.yaml.j2",
    "templates/job.yaml.J2": "job.yaml.j2",
    "templates/job.yaml.jinja": "job.yaml.j2",
    "templates/job.yaml": "job.yaml.j2",
    "templates/job.j2": "job.yaml.j2",
    "templates/mine.json": "mine.yaml.j2",
    "templates/job.yaml.j2": "",
    "templates/_macros.j2": "",
    "templates/included.j2": "",
    "templates/README.md": "",
    "templates/policies/team.yml": "team.yaml",
    "policies/team.yml": "team.yaml",
    "policies/team.YAML": "team.yaml",
    "policies/team.json": "team.yaml",
    "policies/team.conf": "team.yaml",
    "policies/team.yaml.j2": "team.yaml",
    "policies/team.yaml": "",
}
"""Files of the user → the name that a run would read, if it reads no file of this name."""


def test_a_file_whose_name_no_run_reads_is_named(specs: Run, pytester: pytest.Pytester) -> None:
    specs(f=FEATURE)
    pytester.makeini("[pytest]\nschedspec_runs = 1\n")
    for file in MISNAMED:
        (pytester.path / file).parent.mkdir(parents=True, exist_ok=True)
        (pytester.path / file).write_text("{% include 'included.j2' %}" if file.endswith("job.yaml.j2") else "")
    result = pytester.runpytest_inprocess("-p", "schedspec.plugin", "--cluster", "simulated")
    told = {line.split()[4]: line.split()[6] for line in result.outlines if line.startswith("schedspec: no run reads")}
    assert told == {file: name for file, name in MISNAMED.items() if name}


def test_the_templates_of_a_chart_are_not_taken_for_ours(specs: Run, pytester: pytest.Pytester) -> None:
    specs(f=FEATURE)
    pytester.makeini("[pytest]\nschedspec_runs = 1\n")
    (pytester.path / "templates").mkdir()
    (pytester.path / "templates" / "deployment.yaml").write_text("kind: Deployment\n")
    result = pytester.runpytest_inprocess("-p", "schedspec.plugin", "--cluster", "simulated")
    assert "no run reads" not in result.stdout.str()


UNREAD = {
    ("policies/capacity.yaml", "tiers: []"): "policies",
    ("templates/job.yaml.j2", ""): "",
    ("templates/mine.yaml.j2", ""): "",
    ("policies/capacity.yaml", "kind: ClusterPolicy"): "",
    ("policies/mine.yaml", "tiers: []"): "",
    ("features/templates/mine.yaml.j2", ""): "",
}
"""File of a root whose features have a folder, and its text → the folder that no run would read."""


@pytest.mark.parametrize(("file", "text"), UNREAD)
def test_a_file_named_like_one_of_ours_that_is_not_read_is_refused(
    specs: Run, pytester: pytest.Pytester, file: str, text: str
) -> None:
    pytester.makeini("[pytest]\nschedspec_features = features\n")
    (pytester.path / file).parent.mkdir(parents=True)
    (pytester.path / "features").mkdir(exist_ok=True)
    (pytester.path / file).write_text(text)
    result = specs("features", **{"features/some": FEATURE})
    if folder := UNREAD[file, text]:
        name = Path(file).name
        result.stderr.fnmatch_lines(
            [
                f"ERROR: *{file}' is not read, and {name} is a file of ours",
                f"*where: --{folder} (schedspec_{folder} in the ini file)",
                f"*name the folder (schedspec_{folder} = {folder} in the ini file), or rename the file",
            ]
        )
        assert result.ret == pytest.ExitCode.USAGE_ERROR
    else:
        result.assert_outcomes(passed=1)
        note = "schedspec: not read: templates/job.yaml.j2 (name the folder: schedspec_templates = templates)"
        assert (note in result.outlines) == (file == "templates/job.yaml.j2")
