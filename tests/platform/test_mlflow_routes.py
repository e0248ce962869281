"""MLflow serves what is listed, to whom it is listed for, and writes nowhere else."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import mlflow
import pytest

from embedding.platform.mlflow_app import LoginRequired, mlflow_app, mlflow_routes
from embedding.settings import Settings
from embedding.web.tokens import ANALYST, OPERATOR, READER, accounts, allows

pytest.importorskip("mlflow")
# MLflow itself imports what Starlette will drop.
pytestmark = pytest.mark.filterwarnings("ignore:starlette.middleware.wsgi", "ignore::FutureWarning")

PASSWORD = "of-the-platform"
UNSERVED = Path(__file__).with_name("mlflow_unserved.txt")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("home")
    settings = Settings(paths={"home": home})
    for folder in (settings.paths.airflow, settings.paths.mlflow):
        folder.mkdir(parents=True)
    (settings.paths.airflow / "passwords.json").write_text(f'{{"admin": "{PASSWORD}"}}')
    return settings


@pytest.fixture(scope="module")
def app(settings: Settings) -> Iterator[LoginRequired]:
    before = dict(os.environ)  # MLflow's own variables are of this application alone
    os.environ["HOME"] = str(settings.paths.home / "user")
    yield mlflow_app(settings)
    # So are the addresses of its stores, which it keeps for the whole process.
    mlflow.set_tracking_uri(None)
    mlflow.set_registry_uri(None)
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def logins(settings: Settings) -> dict[str, tuple[str, str]]:
    people = accounts(settings.page.accounts)
    made = {role: (role, people.make(role, role)) for role in (READER, ANALYST, OPERATOR)}
    return {**made, "admin": ("admin", PASSWORD)}


def ask(
    app: Any, login: tuple[str, str] | None, method: str, path: str, **given: Any
) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        base = "http://127.0.0.1:5000"
        async with httpx.AsyncClient(transport=transport, base_url=base, auth=login) as client:
            return await client.request(method, path, **given)

    return asyncio.run(send())


def plain(path: str) -> str:
    """A path of FastAPI as Flask writes it."""
    return re.sub(r"\{(\w+)\}", r"<\1>", re.sub(r"\{(\w+):path\}", r"<path:\1>", path))


def asgi_routes(app: Any) -> set[tuple[str, str]]:
    """Method and path of each route, whatever is mounted below included."""
    found = set()
    for route in app.routes:
        if methods := getattr(route, "methods", None):
            found |= {(method, plain(route.path)) for method in methods}
        elif (inner := getattr(route, "app", None)) is not None and hasattr(inner, "app"):
            found |= flask_routes(inner.app)
        elif original := getattr(route, "original_router", None):
            found |= asgi_routes(original)
    return found


def flask_routes(app: Any) -> set[tuple[str, str]]:
    return {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }


def test_what_is_served_is_listed(app: LoginRequired) -> None:
    served = {route for route in asgi_routes(app._app) if route[0] != "HEAD"}
    assert served == set(mlflow_routes())


def test_somebody_looked_at_each_route_that_mlflow_has(app: LoginRequired) -> None:
    """A version of MLflow that brings a new route, or loses one, fails here."""
    from mlflow.server.fastapi_app import app as whole

    listed = [tuple(line.split(" ", 1)) for line in UNSERVED.read_text().splitlines()]
    assert asgi_routes(whole) == {*listed, *mlflow_routes()}
    assert not {*listed} & {*mlflow_routes()}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/ajax-api/3.0/mlflow/assistant/config"),
        ("PUT", "/ajax-api/3.0/mlflow/assistant/config"),
        ("POST", "/ajax-api/3.0/mlflow/assistant/message"),
        ("GET", "/ajax-api/3.0/mlflow/assistant/providers/ollama/health"),
        ("POST", "/gateway/x/mlflow/invocations"),
        ("POST", "/api/3.0/mlflow/gateway/secrets/create"),
        ("POST", "/ajax-api/2.0/mlflow/gateway-proxy"),
        ("POST", "/ajax-api/2.0/mlflow/upload-artifact"),
        ("POST", "/ajax-api/3.0/jobs/"),
        ("POST", "/ajax-api/3.0/mlflow/scorer/invoke"),
        ("POST", "/api/2.0/mlflow/webhooks"),
        ("GET", "/api/3.0/mlflow/mcp-servers"),
        ("POST", "/v1/traces"),
        ("GET", "/docs"),
        ("GET", "//ajax-api/3.0/mlflow/assistant/config"),
        ("GET", "/%2fajax-api/3.0/mlflow/assistant/config"),
        ("GET", "/static-files/../ajax-api/3.0/mlflow/assistant/config"),
    ],
)
def test_the_rest_answers_404_also_to_the_operator(
    app: LoginRequired, logins: dict[str, tuple[str, str]], method: str, path: str
) -> None:
    for answer in (
        ask(app, logins["admin"], method, path, json={}),
        ask(app._app, None, method, path, json={}),  # the application itself has no such route
    ):
        assert answer.status_code in (404, 405), answer.text
    assert ask(app, None, method, path).status_code == 401


def test_each_role_may_what_is_listed(
    app: LoginRequired, logins: dict[str, tuple[str, str]]
) -> None:
    asked: list[str] = []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guard = LoginRequired(behind, app._role_of, frozenset())
    for (method, path), needed in mlflow_routes().items():
        there = re.sub(r"<[^>]*>", "x", path)
        for role, login in logins.items():
            may = allows(OPERATOR if role == "admin" else role, needed)
            answer = ask(guard, login, method, there)
            assert answer.status_code == (200 if may else 403), (role, method, path)
            if answer.status_code == 403:
                assert "operator 역할" in answer.json()["message"]
        open_to_all = 200 if path == "/health" else 401
        for login in (None, (READER, "guessed"), ("nobody", PASSWORD)):
            assert ask(guard, login, method, there).status_code == open_to_all


def test_only_calls_that_read_are_open_to_readers() -> None:
    reading = {
        path.rpartition("/")[2]
        for (method, path), role in mlflow_routes().items()
        if role == READER and method != "GET"
    }
    assert reading == {"graphql", "search", "search-datasets", "get-latest-versions"}


CREATE = "/api/2.0/mlflow/experiments/create"


@pytest.mark.parametrize(
    "place",
    [
        "file:///tmp/x",
        "/tmp/x",
        "../x",
        "s3://bucket/x",
        "mlflow-artifacts:/../../x",
        "mlflow-artifacts://elsewhere.example/x",
        "mlflow-artifacts:/%2e%2e/x",
        "FILE:/x",
        "dbfs:/x",
        "x\nmlflow-artifacts:/1",
    ],
)
def test_an_experiment_keeps_its_files_in_the_home(
    app: LoginRequired, logins: dict[str, tuple[str, str]], place: str
) -> None:
    for n, body in enumerate(
        (
            {"artifact_location": place},
            {"artifactLocation": place},
        )
    ):
        answer = ask(app, logins["admin"], "POST", CREATE, json={"name": f"{n} {place}", **body})
        assert answer.status_code == 400, answer.text
    whole = "/api/2.0/mlflow/model-versions/create"
    ask(app, logins["admin"], "POST", whole.replace("versions", "x"), json={"name": "m"})
    answer = ask(app, logins["admin"], "POST", whole, json={"name": "m", "source": place})
    assert answer.status_code == 400, answer.text
    assert "mlflow-artifacts:/" in answer.json()["message"]


def test_runs_and_files_are_kept_below_the_home_alone(
    app: LoginRequired, logins: dict[str, tuple[str, str]], settings: Settings
) -> None:
    admin = logins["admin"]
    there = {"name": "ours", "artifact_location": "mlflow-artifacts:/ours"}
    made = ask(app, admin, "POST", CREATE, json=there).json()["experiment_id"]
    body = {"experiment_id": made, "start_time": 1}
    run = ask(app, admin, "POST", "/api/2.0/mlflow/runs/create", json=body).json()["run"]
    place = f"ours/{run['info']['run_id']}/artifacts/note.txt"
    upload = "/api/2.0/mlflow-artifacts/artifacts/"
    assert ask(app, admin, "PUT", upload + place, content=b"kept").status_code == 200
    assert (settings.paths.mlflow / "artifacts" / place).read_bytes() == b"kept"
    assert ask(app, logins[READER], "GET", upload + place).content == b"kept"
    for outside in ("../../out", "%2e%2e/%2e%2e/out", "..%2fout", "/etc/out"):
        answer = ask(app, admin, "PUT", upload + outside, content=b"x")
        assert answer.status_code in (400, 404), outside
    assert ask(app, logins[READER], "PUT", upload + place, content=b"x").status_code == 403
    assert not (settings.paths.home / "user").exists(), "MLflow wrote into the person's home"


def test_the_pages_of_mlflow_are_there_without_telemetry(
    app: LoginRequired, logins: dict[str, tuple[str, str]]
) -> None:
    reader = logins[READER]
    page = ask(app, reader, "GET", "/").text
    assert "<html" in page
    script = re.search(r'src="/?(static-files/[^"]+\.js)"', page)
    assert script
    assert ask(app, reader, "GET", f"/{script[1]}").status_code == 200
    told = ask(app, reader, "GET", "/ajax-api/3.0/mlflow/ui-telemetry").json()
    assert told["disable_ui_telemetry"] is True
    assert ask(app, reader, "GET", "/ajax-api/3.0/mlflow/server-info").status_code == 200
