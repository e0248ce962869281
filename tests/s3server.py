"""A real S3 server (moto's) on loopback, which can deny, throttle, lose answers and parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
_ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{said}</Message></Error>'


@dataclass
class Fault:
    """What is to happen to the next `times` requests of a method whose path holds `part`.

    status   the answer; before it the request is carried out, where it is `lost`. 200: a lie
    """

    method: str
    part: str
    times: int = 1
    status: str = "503 Service Unavailable"
    code: str = "SlowDown"
    lost: bool = False


@dataclass
class S3Server:
    """Where it is, and what it does wrong from now on."""

    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def wrap(self, application: Application) -> Application:
        def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
            method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
            self.asked.append((method, path))
            fault = next(
                (f for f in self.faults if f.times and f.method == method and f.part in path), None
            )
            if fault is None:
                return application(environ, start)
            fault.times -= 1
            if fault.lost:
                list(application(environ, lambda *_: lambda _: None))
            body = _ERROR.format(code=fault.code, said="as the test wants it").encode()
            if fault.status.startswith("200"):
                body = b""
            headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
            start(fault.status, headers)
            return [] if method == "HEAD" else [body]

        return answer


@contextmanager
def serving_s3(monkeypatch: pytest.MonkeyPatch, bucket: str) -> Iterator[S3Server]:
    """A server with one bucket; fsspec's s3:// goes there meanwhile."""
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    from s3fs import S3FileSystem
    from werkzeug.serving import make_server

    found = S3Server()
    application = server.DomainDispatcherApplication(server.create_backend_app)
    http = make_server("127.0.0.1", 0, found.wrap(application), threaded=True)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{http.server_port}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": found.url,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()
    try:
        # What it holds is the process's, not the server's.
        httpx.post(f"{found.url}/moto-api/reset", trust_env=False).raise_for_status()
        S3FileSystem().mkdir(bucket)
        found.asked.clear()
        yield found
    finally:
        S3FileSystem.clear_instance_cache()
        http.shutdown()
        thread.join(10)
        http.server_close()
