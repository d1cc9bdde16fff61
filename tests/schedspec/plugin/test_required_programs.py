"""Missing programs that cannot be built or downloaded are one usage error before a cluster boots."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from schedspec.clusters.docker import Docker, DockerError
from schedspec.clusters.programs import build
from schedspec.clusters.programs.download import DownloadError, Downloads
from schedspec.clusters.programs.pinned import EMBEDDED
from schedspec.schedulers.kueue import Kueue
from schedspec.schedulers.kueue.adapter import WATCHED
from schedspec.schedulers.volcano import Volcano

Run = Callable[..., pytest.RunResult]
FEATURE = "Feature: f\n  Scenario: s\n    Then all is well\n  Scenario: t\n    Then all is well\n"
IMAGE = {"template": {"spec": {"containers": [{"image": "registry.example/it:v1"}]}}}
DEPLOYMENT = json.dumps({"metadata": {"name": "it"}, "spec": IMAGE}).encode()
CLUSTER = "*cluster embedded: missing programs: "


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine without Go, network and Docker, and with an empty cache."""

    def no_network(*_: object) -> None:
        raise DownloadError("dl.example.test", "no answer")

    def no_engine(_: Docker) -> None:
        raise DockerError("no Docker engine answers", "docker info", "start one")

    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SCHEDSPEC_BINARIES", raising=False)
    monkeypatch.setattr(build, "go", lambda: None)
    monkeypatch.setattr(Downloads, "fetch", no_network)
    monkeypatch.setattr(Docker, "require", no_engine)
    monkeypatch.setenv("SCHEDSPEC_REGISTRY", "127.0.0.1:1")  # nobody listens there


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with the programs of an embedded cluster."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in EMBEDDED:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("kind", ["auto", "embedded"])
def test_missing_programs_of_the_cluster_are_one_usage_error(specs: Run, tmp_path: Path, kind: str) -> None:
    result = specs("--cluster", kind, f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"{CLUSTER}etcd v*, kube-apiserver v*, kwokctl v*; etcd v* has to be built, and Go is not installed",
            f"  where: {tmp_path / 'cache'}",
            "  do next: install Go (https://go.dev/dl), *: --binaries DIR",
        ]
    )
    assert result.stderr.str().count("missing programs") == 1
    result.stdout.fnmatch_lines(["*etcd v*: no release available (dl.example.test: no answer); Go is not installed"])
    assert "building" not in result.stdout.str()
    result.assert_outcomes()


def test_a_kind_cluster_needs_its_own_programs(specs: Run) -> None:
    result = specs("--cluster", "kind", f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cluster kind: missing programs: kind v*, kubectl v*, kwok v*; kind v* has *"])
    assert "etcd" not in result.stderr.str()


def test_the_error_names_only_the_programs_that_the_folder_lacks(specs: Run, programs: Path) -> None:
    (programs / "kwok").unlink()
    result = specs("--cluster", "embedded", "--binaries", str(programs), f=FEATURE)
    result.stderr.fnmatch_lines([f"{CLUSTER}kwok v*; kwok v* has to be built, *", f"  where: {programs} and *"])
    assert "etcd" not in result.stderr.str()


@pytest.mark.parametrize(
    ("scheduler", "words"),
    [
        ("kube-scheduler", ["*scheduler kube-scheduler: missing programs: kube-scheduler v*", "  where: *", "*DIR"]),
        (
            "volcano",
            ["*scheduler volcano: missing programs: vc-s*, vc-c*; * Connection refused", "  where: *", "*DIR"],
        ),
    ],
)
def test_missing_programs_of_the_scheduler_are_one_usage_error(
    specs: Run, programs: Path, scheduler: str, words: list[str]
) -> None:
    arguments = ("--cluster", "embedded", "--binaries", str(programs), "--runs", "1", "--scheduler", scheduler)
    result = specs(*arguments, f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(words)
    assert "cluster embedded" not in result.stderr.str()


def test_workers_start_no_scenario_if_programs_are_missing(specs: Run) -> None:
    result = specs("--cluster", "embedded", "-n", "2", f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"{CLUSTER}etcd v*", "  where: *", "  do next: *"])
    result.assert_outcomes()


def test_a_run_with_all_programs_begins(specs: Run, programs: Path) -> None:
    specs("--cluster", "embedded", "--binaries", str(programs), f=FEATURE).assert_outcomes(passed=2)


def go_that(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a Go that runs this script, and whose builds fail."""
    go = folder / "go"
    go.write_text(f"#!/bin/sh\ntest $1 = build && exit 9\n{script}\n")
    go.chmod(0o755)
    monkeypatch.setattr(build, "go", lambda: str(go))


def test_programs_that_go_can_build_are_not_built_before_the_run(
    specs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that(f"echo {tmp_path}", tmp_path, monkeypatch)
    result = specs("--cluster", "embedded", f=FEATURE)
    assert "etcd" not in result.stdout.str()
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("true", "go: errors parsing go.mod: requires go >= 1.26.0 (running go 1.19.8; GOTOOLCHAIN=local)"),
        ("test $# = 3", "go: go.etcd.io/etcd/server/v3@v3.6.8: dial tcp: lookup modules.example.test: no such host"),
    ],
    ids=["too old", "no network"],
)
def test_a_go_that_cannot_build_is_one_usage_error_with_the_message_of_go(
    specs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, words: str
) -> None:
    go_that(f"test $1 = list && {when} && echo '{words}' >&2 && exit 1\necho {tmp_path}", tmp_path, monkeypatch)
    result = specs("--cluster", "embedded", f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"{CLUSTER}etcd v*, kube-apiserver v*, kwokctl v*; Go cannot build etcd v* (exit status 1):",
            words,
            "  where: cd * && go list -m*",
            "  do next: *; or name a folder that has them: --binaries DIR",
        ]
    )
    assert result.stderr.str().count("missing programs") == 1
    result.assert_outcomes()


@pytest.fixture
def existing_cluster(tmp_path: Path) -> Iterator[tuple[Path, dict[str, bytes]]]:
    """Yield the kubeconfig of a running cluster, and the responses of its API server by path."""
    answers = {
        "/version": b'{"gitVersion":"v1.37.0","major":"1","minor":"37","gitCommit":"","gitTreeState":"",'
        b'"buildDate":"","goVersion":"","compiler":"","platform":""}'
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.rstrip("/"))
            self.send_response(200 if answer else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(answer or b"{}")

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = tmp_path / "kubeconfig"
        config.write_text(
            "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {}}]\n"
            "contexts: [{name: existing_cluster, context: {cluster: c, user: u}}]\n"
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
        )
        yield config, answers
        server.shutdown()


def run_on_existing(specs: Run, monkeypatch: pytest.MonkeyPatch, config: Path, scheduler: str) -> pytest.RunResult:
    monkeypatch.setenv("KUBECONFIG", str(config))
    given = ("--cluster", "existing", "--kube-context", "existing_cluster", "--runs", "1", "--scheduler", scheduler)
    return specs(*given, f=FEATURE)


def test_a_running_cluster_needs_a_kube_scheduler_of_its_version(
    specs: Run, monkeypatch: pytest.MonkeyPatch, existing_cluster: tuple[Path, dict[str, bytes]]
) -> None:
    result = run_on_existing(specs, monkeypatch, existing_cluster[0], "kube-scheduler")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*scheduler kube-scheduler: missing programs: kube-scheduler v1.37.*"])


def test_a_running_cluster_without_volcano_needs_its_programs(
    specs: Run, monkeypatch: pytest.MonkeyPatch, existing_cluster: tuple[Path, dict[str, bytes]]
) -> None:
    config, answers = existing_cluster
    result = run_on_existing(specs, monkeypatch, config, "volcano")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*scheduler volcano: missing programs: vc-scheduler *its image cannot be used*"])
    answers[Volcano.place.path] = DEPLOYMENT
    run_on_existing(specs, monkeypatch, config, "volcano").assert_outcomes(passed=2)


def test_a_running_cluster_without_kueue_needs_its_program(
    specs: Run, monkeypatch: pytest.MonkeyPatch, existing_cluster: tuple[Path, dict[str, bytes]]
) -> None:
    config, answers = existing_cluster
    result = run_on_existing(specs, monkeypatch, config, "kueue")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*scheduler kueue: missing programs: kueue v*"])
    answers[Kueue.place.path] = DEPLOYMENT
    managed = '{"integrations": {"frameworks": ["batch/job", "pod", "deployment"]}}'
    answers[Kueue.place.config_path] = json.dumps({"data": {Kueue.place.key: managed}}).encode()
    answers["/apis/kueue.x-k8s.io/v1beta2"] = b"{}"
    result = run_on_existing(specs, monkeypatch, config, "kueue")
    result.stderr.fnmatch_lines(["*scheduler kueue: missing programs: kube-scheduler v1.37.*"])
    assert "missing programs: kueue" not in result.stderr.str()


def test_a_folder_of_kueue_needs_its_crds_too(specs: Run, programs: Path) -> None:
    for name in ("kueue", "kube-scheduler"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    given = ("--cluster", "embedded", "--binaries", str(programs), "--scheduler", "kueue")
    result = specs(*given, "--scheduler-binaries", str(programs), f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*scheduler kueue: Kueue's definitions: *Go is not installed", "*crds/ of that folder"]
    )
    (programs / "crds").mkdir()
    for kind in WATCHED:
        head = f"kind: CustomResourceDefinition\nmetadata: {{name: {kind}.kueue.x-k8s.io}}\n"
        (programs / "crds" / f"{kind}.yaml").write_text(head)
    specs(*given, "--scheduler-binaries", str(programs), f=FEATURE).assert_outcomes(passed=2)


def test_an_unknown_context_is_a_usage_error(specs: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "none"
    config.write_text("kind: Config\n")
    result = run_on_existing(specs, monkeypatch, config, "kube-scheduler")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no context is called 'existing_cluster'*"])


def test_a_kube_scheduler_on_kind_has_the_version_of_the_node_image(
    specs: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Docker, "require", lambda _: None)
    monkeypatch.setattr(Docker, "has_image", lambda _, reference: reference == "example.test/node:v1.37.4")
    given = ("--cluster", "kind", "--kind-image", "example.test/node:v1.37.4", "--runs", "1")
    result = specs(*given, "--scheduler", "kube-scheduler", f=FEATURE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cluster kind: missing*", "*scheduler kube-scheduler: missing programs: *v1.37.*"])


@pytest.mark.parametrize("arguments", [["--collect-only"], ["--cluster", "simulated"], ["-k", "none"]])
def test_a_run_that_starts_no_cluster_needs_no_programs(specs: Run, arguments: list[str]) -> None:
    assert "missing programs" not in specs(*arguments, f=FEATURE).stderr.str()
