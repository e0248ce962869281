"""MLflow is open to the platform's login alone, and its own clients and pages work with it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from embedding.evaluation.runs import connect, reported
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.platform.addresses import experiment_url
from embedding.platform.mlflow_app import LoginRequired, mlflow_app
from embedding.settings import Settings
from embedding_airflow.tracking.recording import experiment_id
from waiting import until
from yeoron_lab.ports import lasting_port

MOST_CONNECTIONS = 64

pytest.importorskip("mlflow")

PASSWORD = "p@ss/word:of%the-platform"


def answered(headers: dict[str, str], path: str = "/version", kind: str = "http") -> list[Any]:
    """What a caller with such headers hears; "in" where the application behind was asked."""
    heard: list[Any] = []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        heard.append("in")

    async def send(message: Any) -> None:
        heard.append(message.get("status", message["type"]))

    async def receive() -> Any: ...

    def role_of(name: str, password: str) -> str | None:
        return "operator" if (name, password) == ("admin", PASSWORD) else None

    guard = LoginRequired(behind, role_of, frozenset({"http://127.0.0.1:5000"}))
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "method": "GET", "path": path, "headers": raw}
    asyncio.run(guard(scope, receive, send))
    return heard[:1]


def basic(user: str, password: str) -> dict[str, str]:
    request = httpx.Request("GET", "http://x")
    auth = httpx.BasicAuth(user.encode(), password.encode())
    return {"Authorization": next(auth.auth_flow(request)).headers["Authorization"]}


def test_only_the_login_comes_in() -> None:
    known = basic("admin", PASSWORD)
    assert answered(known) == ["in"]
    assert answered({"Authorization": known["Authorization"].replace("Basic", "basic")}) == ["in"]
    for headers in (
        {},
        basic("admin", ""),
        basic("admin", PASSWORD + "x"),
        basic("root", PASSWORD),
        {"Authorization": "Basic"},
        {"Authorization": known["Authorization"].replace("Basic", "Bearer")},
        {"Authorization": "Basic \xff"},
    ):
        assert answered(headers) == [401], headers
    assert answered({}, kind="websocket") == ["websocket.close"]
    assert answered({}, path="/health") == ["in"]
    assert answered({}, path="/health/../api") == [401]


def test_pages_of_other_origins_do_not_use_a_browsers_login() -> None:
    known = basic("admin", PASSWORD)
    assert answered({**known, "Origin": "http://127.0.0.1:5000"}) == ["in"]
    for origin in ("http://127.0.0.1:9999", "http://evil.example", "null"):
        assert answered({**known, "Origin": origin}) == [403]


def test_a_password_that_clients_cannot_send_is_refused(tmp_path: Path) -> None:
    settings = Settings(paths={"home": tmp_path})
    with pytest.raises(ConfigError, match="no Airflow login here"):
        mlflow_app(settings)
    settings.paths.airflow.mkdir()
    (settings.paths.airflow / "passwords.json").write_text('{"admin": "비밀"}')
    with pytest.raises(ConfigError, match="ASCII letters"):
        mlflow_app(settings)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """MLflow as `yeoron up` starts it."""
    folder = tmp_path_factory.mktemp("mlflow")
    file = folder / "yeoron.toml"
    port = lasting_port()
    file.write_text(f'[paths]\nhome = "{folder / "home"}"\n[ports]\nmlflow = {port}\n')
    settings = Settings(paths={"home": folder / "home"}, ports={"mlflow": port})
    assert settings.tracking_address == settings.mlflow_url, "no platform has run here"
    for made in (settings.paths.airflow, settings.paths.mlflow):
        made.mkdir(parents=True)
    (settings.paths.airflow / "passwords.json").write_text(f'{{"admin": "{PASSWORD}"}}')
    command = [sys.executable, "-m", "embedding.cli", "--settings", str(file), "mlflow"]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:

        def answers() -> bool:
            assert process.poll() is None, log.read_text()[-2000:]
            try:
                return httpx.get(f"{settings.mlflow_url}/health", trust_env=False).is_success
            except httpx.HTTPError:
                return False

        until(answers, lambda: log.read_text()[-2000:])
        yield settings
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=300)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_clients_with_the_login_read_and_write(
    running: Settings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client = connect(running.tracking_address)
    run = client.create_run(experiment_id(client, "여론")).info.run_id
    client.log_metric(run, "nll", 1.5)
    (tmp_path / "note.txt").write_text("kept")
    client.log_artifact(run, str(tmp_path / "note.txt"))
    client.set_terminated(run)
    assert client.get_run(run).data.metrics == {"nll": 1.5}
    assert [each.path for each in client.list_artifacts(run)] == ["note.txt"]
    there = client.download_artifacts(run, "note.txt", str(tmp_path))
    assert Path(there).read_text() == "kept"
    url = experiment_url(running)
    assert "/experiments/" in url
    assert "@" not in url
    assert PASSWORD not in "".join(capfd.readouterr())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_idle_connections_keep_nobody_out(running: Settings) -> None:
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", running.ports.mlflow)))
            for _ in range(MOST_CONNECTIONS + 10)
        ]
        answer = httpx.get(f"{running.mlflow_url}/health", trust_env=False, timeout=60)
        assert answer.text == "OK"
        idle[-1].settimeout(60)
        assert idle[0].recv(1) == b"", "the one that waited longest made room"
        assert idle[-1].recv(1) == b"", "nobody waits for a request for ever"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nobody_else_does(running: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    base = running.mlflow_url
    search = "/api/2.0/mlflow/experiments/search?max_results=1"
    create = "/api/2.0/mlflow/experiments/create"
    artifacts = "/api/2.0/mlflow-artifacts/artifacts/0/x"
    with httpx.Client(base_url=base, trust_env=False, timeout=60) as client:
        for answer in (
            client.get("/"),
            client.get(search),
            client.post(create, json={"name": "theirs"}),
            client.post("/graphql", json={"query": "{__typename}"}),
            client.put(artifacts, content=b"theirs"),
            client.get(f"/ajax-api/2.0/mlflow/{search}", auth=("admin", "admin")),
            client.post("/v1/traces", content=b""),
            client.get("/metrics"),
        ):
            assert answer.status_code == 401, answer.url
        known = ("admin", PASSWORD)
        assert "<html" in client.get("/", auth=known).text
        theirs = {"Origin": "http://127.0.0.1:9"}
        done = client.post(create, json={"name": "theirs"}, auth=known, headers=theirs)
        assert done.status_code == 403
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(PlatformError, match="login of the platform is needed"), reported(base):
        experiment_id(connect(base), "theirs")
