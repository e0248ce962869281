"""Processes of servers: started and ended with whoever started them, and again when they die."""

from __future__ import annotations

import json
import logging
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from pydantic import Field

from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import Config
from embedding.kernel.errors import PlatformError
from embedding.kernel.processes import import_paths
from embedding.server.config import ServerConfig
from yeoron_lab.ports import lasting_port

logger = logging.getLogger(__name__)

START_S = 120.0
_STOP_S = 60.0
_WATCH_S = 0.2
_ENDING_S = 10.0
_LONGEST_PAUSE_S = 10.0


class ProcessSpec(Config):
    """What the process of a server must know to start; given to it as JSON."""

    module: ClassVar[str]
    """It is run."""
    what: ClassVar[str]
    """As logs call it, before its index."""

    server: ServerConfig
    """Address, device, limits and folders."""

    index: int = Field(ge=0)
    """Which of its kind."""


class ProcessKeeper:
    """Keeps one process alive. It listens at the same port in each incarnation."""

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = _listening_at(spec, spec.server.port or lasting_port(spec.server.host))
        self.name = f"{spec.what} {spec.index}"
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="process-keeper", daemon=True)

    @property
    def pid(self) -> int:
        """The process that runs now, 0 when none does."""
        return 0 if self._process is None else self._process.pid

    @property
    def code(self) -> int | None:
        """With which exit code it ended; None: it runs, or was never started."""
        return None if self._process is None else self._process.returncode

    def launch(self) -> None:
        command = [sys.executable, "-m", self.spec.module]
        # It ends when its standard input ends, which is when this process is gone.
        self._process = subprocess.Popen(  # noqa: S603 - this very program
            [*command, self.spec.model_dump_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **import_paths()},
        )

    def ready(self, deadline: float) -> str:
        """Wait until it listens, and where."""
        process, line = self._process, b""
        if process is None or process.stdout is None:
            raise PlatformError(f"{self.name}: it was not started.")
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if time.monotonic() > deadline or self._stopping.is_set():
                    raise PlatformError(f"{self.name} was not ready in time.")
                if not waiting.select(_WATCH_S):
                    continue
                piece = os.read(process.stdout.fileno(), 4096)
                if not piece:
                    raise PlatformError(
                        f"{self.name} ended while it started (exit code "
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
            self._thread.join(timeout=_STOP_S)
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            logger.warning("%s did not end within %.0f s", self.name, _STOP_S)
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
                self.name,
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


class Fleet:
    """Runs processes of one kind, and starts each again when it dies."""

    def __init__(self, specs: Sequence[ProcessSpec]) -> None:
        self._keepers = [ProcessKeeper(spec) for spec in specs]

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
        """Of those that ended without a last checkpoint, a sentence each."""
        return [
            f"{keeper.name}: it ended with exit code {code}, without a last checkpoint."
            for keeper in self._keepers
            if keeper.spec.server.state_dir is not None and (code := keeper.code)
        ]

    @property
    def restarts(self) -> list[int]:
        return [keeper.restarts for keeper in self._keepers]

    @property
    def pids(self) -> list[int]:
        return [keeper.pid for keeper in self._keepers]


def end_with_parent(end: Callable[[], object]) -> None:
    """In such a process: call `end` when standard input ends, with whoever started the process."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        end()

    threading.Thread(target=wait, daemon=True).start()


def announce(**addresses: str) -> None:
    """In such a process: say that it listens, and where, as ProcessKeeper reads it."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:
        out.write(json.dumps(addresses) + "\n")


def own_line(config: ServerConfig) -> ExchangeConfig:
    """How a server reaches others of its training: with its own secret, authority and limits."""
    return ExchangeConfig(
        # A group asks its leader to cut windows, which is an operator's call.
        token_file=config.operator_token_file or config.token_file,
        tls_ca=config.tls_ca or config.tls_cert,
        tls_cert=None if config.tls_client_ca is None else config.tls_cert,
        tls_key=None if config.tls_client_ca is None else config.tls_key,
        max_message_bytes=config.max_message_bytes,
    )


def _listening_at(spec: ProcessSpec, port: int) -> ProcessSpec:
    return spec.model_copy(update={"server": spec.server.model_copy(update={"port": port})})


def _code(process: subprocess.Popen[bytes]) -> int | str:
    """The exit code of a process that says nothing any more; one that hangs is killed."""
    try:
        return process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait(_ENDING_S)
