"""Client of a Docker engine, through the command line `docker`.

Every call has a deadline. An engine may hang, and some networks accept every connection and answer none.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from . import subprocess_run
from .protocol import ClusterError, Progress
from .subprocess_run import Tick, silent

_ANSWER_SECONDS = 10.0
_OFFER_SECONDS = 10.0
_PULL_SECONDS = 900.0
_WORK_SECONDS = 300.0


class DockerError(ClusterError):
    """The Docker engine is missing, or a command failed."""


class Docker:
    """The engine that the `docker` in PATH connects to. DOCKER_HOST and Docker's contexts apply."""

    def __init__(self) -> None:
        self.program = shutil.which("docker")

    def version(self) -> str | None:
        """Return the engine's version, or None if no engine answers."""
        if self.program is None:
            return None
        done = subprocess_run.run(
            [self.program, "version", "--format", "{{.Server.Version}}"], deadline=_ANSWER_SECONDS
        )
        return done.output.strip().splitlines()[-1] if done.status == 0 and done.output.strip() else None

    def require(self) -> str:
        """Return the engine's version.

        Raises:
            DockerError: no engine answers.
        """
        version = self.version()
        if version is not None:
            return version
        if self.program is None:
            raise DockerError(
                "a Kind cluster needs Docker, and it is not installed",
                "PATH",
                "install Docker and start its engine, or use --cluster embedded, which needs none",
            )
        raise DockerError(
            f"the Docker engine did not answer within {_ANSWER_SECONDS:.0f} s",
            f"{self.program} version",
            "start the engine (`systemctl start docker`, or Docker Desktop), or set DOCKER_HOST to its address; "
            "--cluster embedded needs none",
        )

    def call(self, *words: str | Path, deadline: float = _WORK_SECONDS, tick: Tick = silent) -> str:
        """Run a command and return its output, both streams in one.

        Raises:
            DockerError: the command failed or exceeded its deadline.
        """
        if self.program is None:
            self.require()
        done = subprocess_run.run([str(self.program), *words], deadline=deadline, tick=tick)
        if done.status == 0:
            return done.output
        how = f"did not end within {deadline:.0f} s" if done.status is None else f"failed (exit status {done.status})"
        command = " ".join(["docker", *map(str, words)])
        raise DockerError(
            f"`docker {words[0]}` {how}:\n{done.last_lines}", command, "repair the failure that Docker reports above"
        )

    def succeeds(self, *words: str, deadline: float = _ANSWER_SECONDS) -> bool:
        """Whether the command ended with status 0 within its deadline."""
        return self.program is not None and subprocess_run.run([self.program, *words], deadline=deadline).status == 0

    def has_image(self, reference: str) -> bool:
        return self.succeeds("image", "inspect", "--format", "{{.Id}}", reference)

    def offers(self, reference: str) -> bool:
        """Whether a reachable registry has the image. Takes seconds on a network that drops connections."""
        return self.succeeds("manifest", "inspect", reference, deadline=_OFFER_SECONDS)

    def require_image(self, reference: str) -> None:
        """Check that the engine has an image, or that a reachable registry has it.

        Raises:
            DockerError: neither has it.
        """
        if not self.has_image(reference) and not self.offers(reference):
            raise DockerError(
                f"the image {reference} is not in the Docker engine, and no reachable registry has it",
                f"docker manifest inspect {reference}",
                "name an image that the engine has (`docker images`), or load it: docker load --input FILE",
            )

    def pull(self, reference: str, progress: Progress) -> None:
        """Pull an image from its registry. Fails within seconds if the registry is unreachable.

        Raises:
            DockerError: no reachable registry has the image.
        """
        self.require_image(reference)
        progress(f"{reference}: pulling")
        self.call(
            "pull",
            "--quiet",
            reference,
            deadline=_PULL_SECONDS,
            tick=lambda s: progress(f"{reference}: pulling, {s:.0f} s"),
        )

    def load(self, archive: Path, progress: Progress) -> None:
        """Load the images of an archive in the format of `docker save`."""
        progress(f"{archive.name}: loading into the Docker engine")
        self.call(
            "load",
            "--quiet",
            "--input",
            archive,
            tick=lambda s: progress(f"{archive.name}: loading into the Docker engine, {s:.0f} s"),
        )
