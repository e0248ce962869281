"""A host that has joined brings the evidence of its nodes to the control host.

Nodes write files into the home of their own host. Each is delivered to the control host's door and
removed here once it is there, so that it lies in one home alone; while the control host is away,
files wait.
"""

from __future__ import annotations

import hashlib
import http
import logging
import ssl
import threading
from pathlib import Path

from embedding.kernel.errors import PlatformError
from embedding.platform.hosts import JoinedHost, ask_door, fingerprint
from embedding.settings import PathsConfig

logger = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
_LONGEST_PAUSE = 60.0


class EvidenceDelivery:
    """Delivers what lies in a home; `deliver` once, `run` for as long as the host works."""

    def __init__(self, paths: PathsConfig, host: JoinedHost) -> None:
        self._folder = paths.evidence
        self._host = host
        self._authority = fingerprint(ssl.PEM_cert_to_DER_cert(paths.authority.read_text("ascii")))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # it is the authority itself, known by its fingerprint
        context.load_verify_locations(paths.authority)
        context.load_cert_chain(*paths.dask_certificate)
        self._context = context
        self._refused: set[str] = set()

    def run(self, stop: threading.Event) -> None:
        """Deliver every few seconds, and more seldom while the control host is away."""
        pause = EVERY_SECONDS
        while not stop.wait(pause):
            try:
                self.deliver()
                pause = EVERY_SECONDS
            except PlatformError as error:
                pause = min(2 * pause, _LONGEST_PAUSE)
                logger.warning("%s Trying again in %.0f s.", error, pause)

    def deliver(self) -> int:
        """Bring all files there; how many. PlatformError while the control host is away."""
        done = 0
        for path in sorted(self._folder.glob("*/*.parquet")):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue  # its writer joined it with others
            digest = hashlib.sha256(data).hexdigest()
            if digest in self._refused:
                continue
            status = self._post(path, data)
            if status == http.HTTPStatus.OK:
                path.unlink(missing_ok=True)
                done += 1
            elif status == http.HTTPStatus.BAD_REQUEST:
                self._refused.add(digest)
                logger.error("%s: the control host refuses it; its log says why.", path)
            else:
                raise PlatformError(f"{self._where}: it answered {status}.")
        return done

    @property
    def _where(self) -> str:
        return f"evidence for the control host at {self._host.control}:{self._host.port}"

    def _post(self, path: Path, data: bytes) -> int:
        door = (self._host.control, self._host.port)
        to = f"/evidence/{path.parent.name}/{path.name}"
        try:
            answer = ask_door(door, self._context, self._authority, to, data)
        except OSError as error:
            raise PlatformError(f"{self._where}: it does not answer ({error}).") from error
        if answer is None:
            raise PlatformError(f"{self._where}: another host answers there.")
        return answer[0]
