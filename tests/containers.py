"""Podman for the tests: images built from this tree, and the compose file in a network of its own.

YEORON_TEST_BASE_IMAGE      an image of Debian for the argument BASE of the Containerfile
YEORON_TEST_BUILD_OPTIONS   more options of `podman build`, as for an index of packages
YEORON_TEST_IMAGE           the platform's image, instead of one built here
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from waiting import until

ROOT = Path(__file__).parents[1]
BASE = "YEORON_TEST_BASE_IMAGE"
PODMAN = ("podman", "--runtime", "runc")
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
"""What podman may give a container inside a container."""
USER = 10001


def base_image() -> str:
    """The base to build from; skips where there is none, or no podman."""
    if shutil.which("podman") is None or BASE not in os.environ:
        pytest.skip(f"needs podman, and the name of a base image in {BASE}")
    return os.environ[BASE]


def built(file: Path, context: Path, name: str) -> str:
    """Build an image; its name."""
    extra = shlex.split(os.environ.get("YEORON_TEST_BUILD_OPTIONS", ""))
    command = [*PODMAN, "build", "--isolation", "chroot", "--format", "docker", *LIMITS[:2]]
    command += ["--build-arg", f"BASE={base_image()}", *extra, "-f", str(file), "-t", name]
    subprocess.run([*command, str(context)], check=True, timeout=3000)
    return name


def platform_image() -> str:
    """The image of infra/Containerfile, or the one that the environment names."""
    given = os.environ.get("YEORON_TEST_IMAGE")
    return given or built(ROOT / "infra" / "Containerfile", ROOT, "localhost/yeoron-test")


def database_image() -> str:
    """Debian's PostgreSQL with an entry point that takes what that of the usual image takes."""
    here = ROOT / "tests" / "infra"
    return built(here / "database.Containerfile", here, "localhost/yeoron-test-database")


def run_once(image: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a container as strict as that of the compose file."""
    command = [*PODMAN, "run", "--rm", *LIMITS, "--network", "none", "--read-only", *options]
    command += ["--cap-drop", "all", "--tmpfs", "/tmp", "--entrypoint", "sh", image, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


class Composed:
    """infra/compose.yaml with its files beside it, under `podman-compose`."""

    def __init__(self, folder: Path, images: dict[str, str], network: str) -> None:
        """`network` is a network namespace: the host whose network the platform shares."""
        self._folder = folder
        self._environment = {**os.environ, **images}
        self._inside = ["nsenter", f"--net=/run/netns/{network}"]
        self.project = f"yeoron-{network}"

    def compose(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run podman-compose; its output. Raises CalledProcessError."""
        tool = ["podman-compose", "-p", self.project, "--podman-args", "--runtime runc"]
        tool += ["--podman-run-args", shlex.join(LIMITS)]
        files = [part for name in ("compose.yaml", "more.yaml") for part in ("-f", name)]
        return self._run([*tool, *files, *arguments], check=True)

    def container(self, service: str) -> str:
        """Name of the container of a service."""
        return f"{self.project}_{service}_1"

    def healthy(self, service: str) -> bool:
        """Whether its health check passes now; without systemd podman itself asks never."""
        check = [*PODMAN, "healthcheck", "run", self.container(service)]
        return self._run(check).returncode == 0

    def logs(self, service: str) -> str:
        """What it printed."""
        done = self._run([*PODMAN, "logs", "--tail", "40", self.container(service)])
        return done.stdout + done.stderr

    def inspected(self) -> str:
        """All that podman knows of the containers."""
        names = [self.container(service) for service in ("database", "platform")]
        return self._run([*PODMAN, "inspect", *names]).stdout

    def python(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a Python script in the platform's container."""
        command = [*PODMAN, "exec", "-i", self.container("platform"), "python", "-"]
        return self._run(command, given=script)

    def listening(self) -> set[str]:
        """ADDRESS:PORT of every listening TCP socket of the host."""
        lines = self._run(["ss", "-Hltn"]).stdout.splitlines()
        return {line.split()[3] for line in lines}

    def wait_healthy(self, service: str, seconds: float) -> None:
        """Ask once a second whether it is healthy; AssertionError with its log."""
        until(
            lambda: self.healthy(service) or time.sleep(1),
            lambda: f"{service} is not healthy: {self.logs(service)}",
            seconds,
        )

    def _run(
        self, command: Sequence[str], given: str | None = None, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._inside, *command],
            cwd=self._folder,
            env=self._environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=2400,
            check=check,
        )


@contextmanager
def network_namespace() -> Iterator[str]:
    """A network of its own with a loopback, so that no port of this machine is taken."""
    name = f"y{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)
