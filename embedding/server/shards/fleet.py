"""The processes of the shards: started and ended with the primary, started again when they die."""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from embedding.kernel.errors import PlatformError
from embedding.kernel.ports import lasting_port
from embedding.server.config import ServerConfig
from embedding.server.groups.spec import GroupSpec
from embedding.server.shards.spec import ShardSpec

logger = logging.getLogger(__name__)

START_S = 120.0
STOP_S = 60.0
_WATCH_S = 0.2
_ENDING_S = 10.0
_LONGEST_PAUSE_S = 10.0


def shard_specs(
    config: ServerConfig, *, dim: int, seed: int, identity: str, buckets: int = 0
) -> list[ShardSpec]:
    """The shards of a server, each with a port and a state folder of its own."""
    specs = []
    home = config.shards_dir or config.state_dir
    for index in range(config.shards):
        folder = None if home is None else home / f"shard-{index}"
        changes = {
            "port": config.shards_port + index if config.shards_port else 0,
            "shards_port": 0,
            "state_dir": folder,
            "snapshots": None,
            "gold": None,
            "shards": 1,
        }
        server = config.model_copy(update=changes)
        specs.append(
            ShardSpec(
                server=server,
                index=index,
                count=config.shards,
                dim=dim,
                buckets=buckets,
                seed=seed,
                identity=identity,
            )
        )
    return specs


class Fleet:
    """Runs one process a shard."""

    def __init__(self, specs: Sequence[ShardSpec]) -> None:
        self._keepers = [ShardKeeper(spec) for spec in specs]

    def start(self) -> list[str]:
        """Start all and return where they listen; PlatformError when one does not start."""
        try:
            for keeper in self._keepers:
                keeper.launch()
            deadline = time.monotonic() + START_S
            locations = [keeper.ready(deadline) for keeper in self._keepers]
        except BaseException:
            self.stop()
            raise
        for keeper in self._keepers:
            keeper.watch()
        return locations

    def stop(self) -> None:
        """End all; each writes a last checkpoint first."""
        for keeper in self._keepers:
            keeper.hint()
        for keeper in self._keepers:
            keeper.end()

    def unkept(self) -> list[str]:
        """Of shards that ended without a last checkpoint, a sentence each."""
        return [
            f"shard {keeper.spec.index}: it ended with exit code {code}, without a last checkpoint."
            for keeper in self._keepers
            if keeper.spec.server.state_dir is not None and (code := keeper.code)
        ]

    @property
    def restarts(self) -> list[int]:
        """How often each was started again."""
        return [keeper.restarts for keeper in self._keepers]

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [keeper.pid for keeper in self._keepers]


class ShardKeeper:
    """Keeps one shard's or one group's process alive. It listens at the same port in each life."""

    def __init__(self, spec: ShardSpec | GroupSpec) -> None:
        self.spec = _listening_at(spec, spec.server.port or lasting_port(spec.server.host))
        grouped = isinstance(spec, GroupSpec)
        self._what = f"server group {spec.index}" if grouped else f"shard {spec.index}"
        self._module = "groups.process" if grouped else "shards.service"
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="shard-keeper", daemon=True)

    @property
    def pid(self) -> int:
        """The process that runs now, 0 when none does."""
        return 0 if self._process is None else self._process.pid

    @property
    def code(self) -> int | None:
        """With which exit code it ended; None: it runs, or was never started."""
        return None if self._process is None else self._process.returncode

    def launch(self) -> None:
        """Start the process."""
        command = [sys.executable, "-m", f"embedding.server.{self._module}"]
        # It ends when its standard input ends, which is when this process is gone.
        self._process = subprocess.Popen(  # noqa: S603 - this very program
            [*command, self.spec.model_dump_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": _path()},
        )

    def ready(self, deadline: float) -> str:
        """Wait until it listens, and where."""
        process, line = self._process, b""
        if process is None or process.stdout is None:
            raise PlatformError(f"{self._what}: it was not started.")
        while not line.endswith(b"\n"):
            if time.monotonic() > deadline or self._stopping.is_set():
                raise PlatformError(f"{self._what} was not ready in time.")
            if not select.select([process.stdout], [], [], _WATCH_S)[0]:
                continue
            piece = os.read(process.stdout.fileno(), 4096)
            if not piece:
                raise PlatformError(
                    f"{self._what} ended while it started (exit code "
                    f"{_code(process)}); its log says why."
                )
            line += piece
        location: str = json.loads(line)["location"]
        self.spec = _listening_at(self.spec, int(location.rpartition(":")[2]))
        return location

    def watch(self) -> None:
        """Begin to start it again whenever it ends."""
        self._thread.start()

    def hint(self) -> None:
        """Tell it to end."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            if process.stdin is not None:
                process.stdin.close()

    def end(self) -> None:
        """Wait until it has ended; one that does not is killed."""
        if self._thread.is_alive():
            self._thread.join(timeout=STOP_S)
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            logger.warning("%s did not end within %.0f s", self._what, STOP_S)
            process.kill()
            process.wait(10)
        self._close(process)

    def _watch(self) -> None:
        pause = _WATCH_S
        while not self._stopping.wait(_WATCH_S):
            process = self._process
            if process is None or process.poll() is None:
                continue
            logger.warning(
                "%s ended (exit code %d); starting it again",
                self._what,
                process.returncode,
            )
            self._close(process)
            self.restarts += 1
            began = time.monotonic()
            try:
                self.launch()
                self.ready(began + START_S)
                pause = _WATCH_S
            except (PlatformError, OSError, ValueError) as error:
                logger.error("%s", error)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                self._stopping.wait(pause)

    def _close(self, process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _listening_at(spec: ShardSpec | GroupSpec, port: int) -> ShardSpec | GroupSpec:
    return spec.model_copy(update={"server": spec.server.model_copy(update={"port": port})})


def _code(process: subprocess.Popen[bytes]) -> int | str:
    """The exit code of a process that says nothing any more; one that hangs is killed."""
    try:
        return process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait(_ENDING_S)


def _path() -> str:
    """Where the child finds this package, whatever its working folder."""
    root = str(Path(__file__).resolve().parents[3])
    return os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
