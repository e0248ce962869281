"""What the control host answers other hosts: those that join, and those that deliver evidence.

TLS with the authority's own certificate. Who joins shows a token; who delivers evidence shows the
certificate that it was given for one.
"""

from __future__ import annotations

import http
import json
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from embedding.kernel.certificates import sign_request
from embedding.kernel.errors import YeoronError
from embedding.platform.hosts import DOOR_SECONDS, JOINING_BYTES, Role, invitation_file
from embedding.settings import Settings
from embedding.snapshots.evidence import EvidenceStore

logger = logging.getLogger(__name__)

MOST_EVIDENCE = 64 * 1024 * 1024
"""Bytes of one file of evidence."""
_EVIDENCE = re.compile(r"/evidence/(\d{4}-\d{2})/([0-9A-Za-z_.]{1,80}-[0-9a-f]{12})\.parquet")


class Door:
    """Answers other hosts, until `close`."""

    def __init__(self, settings: Settings) -> None:
        """Listens from now on; `port` is its port."""
        self._settings = settings
        self._lock = threading.Lock()
        door = self

        class Handler(BaseHTTPRequestHandler):
            timeout = DOOR_SECONDS

            def do_POST(self) -> None:
                """A request to join, or a file of evidence."""
                evidence = _EVIDENCE.fullmatch(self.path)
                if evidence is None:
                    status, answer = door.answer(self.path, self._body(JOINING_BYTES))
                elif not self.connection.getpeercert():
                    status, answer = 403, {}
                else:
                    body = self._body(MOST_EVIDENCE)
                    status, answer = door.take(evidence[1], evidence[2], body), {}
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _body(self, most: int) -> bytes:
                length = self.headers.get("Content-Length", "")
                if not length.isdecimal() or int(length) > most:
                    return b""
                return self.rfile.read(int(length))

            def log_message(self, format: str, *args: Any) -> None:
                logger.info("%s: %s", self.client_address[0], format % args)

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*settings.paths.dask_certificate)
        # Who joins has no certificate yet.
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(settings.paths.dask_certificate[0])
        self._evidence = EvidenceStore(settings.paths.evidence)
        self._server = _Listening(settings.hosts.address, settings.hosts.port, Handler, context)
        self.port = int(self._server.server_address[1])

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: bytes) -> tuple[int, Mapping[str, str]]:
        """Status and JSON for one request; a good token is used up."""
        try:
            asked = json.loads(body)
            token, request = str(asked["token"]), str(asked["request"])
        except (ValueError, KeyError, TypeError):
            return 400, {}
        if path != "/join":
            return 404, {}
        paths = self._settings.paths
        invitation = invitation_file(paths, token)
        try:
            invited = json.loads(invitation.read_bytes())
            if time.time() > float(invited["expires"]):
                return 410, {}
            given = self._for_role(invited["role"], request)
            with self._lock:
                invitation.unlink()
        except FileNotFoundError as error:
            return (503 if error.filename == str(paths.node_token) else 403), {}
        except (ValueError, OSError, YeoronError) as error:
            logger.warning("a host could not join: %s", error)
            return 400, {}
        return 200, {
            "authority": paths.authority.read_text("ascii"),
            "scheduler": self._settings.dask_url,
            **given,
        }

    def take(self, month: str, name: str, data: bytes) -> int:
        """Status for a file of evidence of another host: 200 once it is this home's."""
        try:
            with self._lock:
                self._evidence.take(month, name, data)
        except YeoronError as error:
            logger.warning("evidence %s of another host was refused: %s", name, error)
            return http.HTTPStatus.BAD_REQUEST
        except OSError as error:
            logger.warning("evidence %s of another host was not kept: %s", name, error)
            return http.HTTPStatus.INSUFFICIENT_STORAGE
        return http.HTTPStatus.OK

    def _for_role(self, role: Role, request: str) -> dict[str, str]:
        paths, server = self._settings.paths, self._settings.hosts.server
        own = paths.dask_certificate
        node_token = paths.node_token.read_text("ascii")
        if role == "node":
            return {"certificate": sign_request(request, own), "node_token": node_token}
        names = (server, "127.0.0.1", "localhost")
        return {
            "certificate": sign_request(request, own, names),
            "node_token": node_token,
            "operator_token": paths.operator_token.read_text("ascii"),
            "address": server,
        }


class _Listening(ThreadingHTTPServer):
    """TLS begins in the thread of a connection: one that says nothing holds up nobody else."""

    daemon_threads = True

    def __init__(
        self, host: str, port: int, handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._context = context
        super().__init__((host, port), handler)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The handshake first, within the time that a request has."""
        try:
            request.settimeout(DOOR_SECONDS)
            wrapped = self._context.wrap_socket(request, server_side=True)
        except OSError as error:
            logger.info("%s: %s", client_address[0], error)
            self.shutdown_request(request)
            return
        super().process_request_thread(wrapped, client_address)
