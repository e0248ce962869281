"""The parameter server as a running thing: ports, threads, signals."""

from __future__ import annotations

import itertools
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import torch

from embedding.config import validate
from embedding.errors import ConfigError, PlatformError, RefusedError, UnavailableError
from embedding.exchange.token import read_token
from embedding.records import Window
from embedding.server.checkpoint import CheckpointFolder
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.cutting import Cutter
from embedding.server.flight import Control, FlightService
from embedding.server.hangup import end
from embedding.server.http import HttpService, create_app
from embedding.server.metrics import render
from embedding.server.recovery import Recovery
from embedding.server.state import ServerState
from embedding.server.status import build_status

logger = logging.getLogger(__name__)

_TICK_S = 0.5
_FOLLOW_TICKS = 10


class ParameterServer:
    """One parameter server; `start` opens its ports, `stop` closes them.

    dim        columns of a row; the last `biases` of them are no part of a vector (GloVe: 1)
    buckets    rows for n-grams (fastText), 0 for every other model
    location   grpc://host:port for ParameterClient
    http_url   http://host:port of /health, /metrics and /status
    """

    def __init__(
        self,
        config: ServerConfig,
        sync: SyncConfig | None = None,
        *,
        dim: int,
        seed: int = 0,
        buckets: int = 0,
        biases: int = 0,
    ) -> None:
        torch.set_num_threads(config.threads)
        self.config = config
        folder = None
        if config.state_dir is not None:
            folder = CheckpointFolder(config.state_dir, keep=config.keep_checkpoints)
        epoch = None if folder is None else folder.next_epoch()
        self.state = ServerState(
            config,
            sync or SyncConfig(),
            dim=dim,
            seed=seed,
            epoch=epoch,
            buckets=buckets,
            biases=biases,
        )
        self._recovery = None
        try:
            if folder is not None:
                self._recovery = Recovery(self.state, folder, every_s=config.checkpoint_every_s)
            self.cutter = Cutter(self.state, config)
        except BaseException:
            if folder is not None:
                folder.close()
            raise
        self.location = ""
        self.http_url = ""
        self._flight: FlightService | None = None
        self._http: HttpService | None = None
        self._stopping = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="ticker", daemon=True)

    def start(self) -> None:
        """Open the ports; PlatformError when one is taken."""
        config = self.config
        self._http = HttpService(
            create_app(self.status, lambda: render(self.status(), self.state.meters)),
            host=config.http_host,
            port=config.http_port,
        )
        try:
            self._flight = self._listen()
        except BaseException:
            self._http.stop()
            raise
        scheme = "grpc" if config.tls_cert is None else "grpc+tls"
        self.location = f"{scheme}://{config.host}:{self._flight.port}"
        self.http_url = self._http.url
        self._http.start()
        self._ticker.start()
        if self._recovery is not None:
            self._recovery.start()
        logger.info("parameter server at %s, status at %s", self.location, self.http_url)

    def stop(self) -> None:
        """Apply what is held back, finish what is being written, free the ports."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self.state.close()
        if self._flight is not None:
            end(self._flight)
        self._ticker.join(timeout=10)
        self.state.flush()
        self.cutter.close()
        if self._recovery is not None:
            self._recovery.stop()
        if self._http is not None:
            self._http.stop()

    def serve_forever(self) -> None:
        """Serve until SIGTERM or SIGINT; call it from the main thread."""
        ended = threading.Event()

        def leave(number: int, frame: FrameType | None) -> None:
            del number, frame
            ended.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, leave)
        self.start()
        ended.wait()
        self.stop()

    def status(self) -> dict[str, Any]:
        """The status JSON."""
        return build_status(self.state, self.cutter.refs())

    def _listen(self) -> FlightService:
        config = self.config
        host = f"[{config.host}]" if ":" in config.host else config.host
        scheme = "grpc+tcp" if config.tls_cert is None else "grpc+tls"
        tls = None
        if config.tls_cert is not None and config.tls_key is not None:
            tls = (_read(config.tls_cert, "tls_cert"), _read(config.tls_key, "tls_key"))
        token = None if config.token_file is None else read_token(config.token_file)
        controls: dict[str, Control] = {
            "ping": self._ping,
            "status": self._status,
            "report": self._report,
            "idle": self._idle,
            "cut": self._cut,
            "configure": self._configure,
            "checkpoint": self._checkpoint,
        }
        try:
            return FlightService(
                f"{scheme}://{host}:{config.port}", self.state, controls, token=token, tls=tls
            )
        except (pa.ArrowException, OSError) as error:
            raise PlatformError(
                f"port {config.port} of {config.host} (setting port): it cannot be opened; "
                "another process may have it."
            ) from error

    def _ping(self, body: dict[str, Any]) -> bool:
        del body
        return not self.state.closing

    def _status(self, body: dict[str, Any]) -> dict[str, Any]:
        del body
        return self.status()

    def _report(self, body: dict[str, Any]) -> None:
        report = body.get("report")
        if not isinstance(report, dict):
            raise RefusedError("report: a JSON object is accepted.")
        self.state.report(_node(body), report)

    def _idle(self, body: dict[str, Any]) -> None:
        self.state.idle(_node(body))

    def _cut(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            bounds = [datetime.fromisoformat(str(body[name])) for name in ("start", "end")]
        except (KeyError, ValueError) as error:
            raise RefusedError("cut: start and end in ISO 8601 are accepted.") from error
        return dict(self.cutter.cut(Window(*bounds)).to_dict())

    def _configure(self, body: dict[str, Any]) -> dict[str, Any]:
        before = self.state.machine.config.model_dump()
        sync = validate(SyncConfig, {**before, **body}, "configure")
        self.state.configure(sync)
        return sync.model_dump(mode="json")

    def _checkpoint(self, body: dict[str, Any]) -> None:
        if self._recovery is None:
            return
        failed = self._recovery.request(wait=body.get("wait", True) is True)
        if failed is not None:
            raise UnavailableError(f"{failed}.")

    def _tick(self) -> None:
        """What happens by time alone: departures and complete windows."""
        ticks = itertools.count()
        while not self._stopping.wait(_TICK_S):
            try:
                self.state.tick()
                if next(ticks) % _FOLLOW_TICKS == 0:
                    self.state.follow_frequent()
                if self.config.cut == "watermark":
                    for window in self.state.due():
                        self.cutter.start(window)
            except Exception:
                logger.exception("the ticker goes on after an error")


@contextmanager
def running_server(
    config: ServerConfig | None = None,
    sync: SyncConfig | None = None,
    *,
    dim: int = 8,
    seed: int = 0,
    buckets: int = 0,
    biases: int = 0,
) -> Iterator[ParameterServer]:
    """A server on free ports for the length of a `with` block."""
    server = ParameterServer(
        config or ServerConfig(), sync, dim=dim, seed=seed, buckets=buckets, biases=biases
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _node(body: dict[str, Any]) -> str:
    node = body.get("node")
    if not isinstance(node, str) or not node:
        raise RefusedError("a node's name is needed.")
    return node


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting} {path}: {error.strerror}.") from error
