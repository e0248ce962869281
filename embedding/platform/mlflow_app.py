"""MLflow's server, limited to some of its routes and to people with an account.

Each request carries a name and a password (HTTP Basic), which browsers and MLflow's own clients
know how to send: those of Airflow's login, or of an account. `mlflow_routes.txt` lists each route
that is served, and the role that it needs. MLflow has many more, and one of them runs commands in
a shell: what is not in the list is not part of the application.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding.kernel.errors import ConfigError, PlatformError
from embedding.settings import Settings, platform_login
from embedding.web.tokens import OPERATOR, accounts, allows

if TYPE_CHECKING:
    from flask import Flask

_HEALTH = "/health"
_ROUTES = Path(__file__).with_name("mlflow_routes.txt")
_ARTIFACTS = re.compile(r"mlflow-artifacts:/(?!/)(?!.{0,1000}\.\.)[\w./ -]{0,1000}")
"""Locations of experiments that are accepted: below the folder of artifacts."""
_SOURCES = re.compile(_ARTIFACTS.pattern + r"|(runs|models):/(?!.{0,1000}\.\.)[\w./@ -]{1,1000}")
"""Where a version of a model may come from."""
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
App = Callable[[_Message, _Receive, _Send], Awaitable[None]]
"""An ASGI application."""
RoleOf = Callable[[str, str], str | None]
"""The role of whoever has this name and password; None: nobody has."""
Route = tuple[str, str]
"""Method and path, with variable parts as Flask writes them."""


def mlflow_routes() -> dict[Route, str]:
    """The routes that are served, and the role that each needs."""
    listed = (line.split(" ", 2) for line in _ROUTES.read_text(encoding="utf-8").splitlines())
    return {(method, path): role for role, method, path in listed}


class LoginRequired:
    """Hands on listed requests of somebody whose role allows them, and those for /health.

    Without a login: 401. A route that is not listed: 404. A role that does not allow it: 403, as
    for a request of a page of another origin: a browser sends the login with it, too.

    role_of  who may what
    origins  from which pages may ask
    """

    def __init__(self, app: App, role_of: RoleOf, origins: frozenset[str]) -> None:
        from werkzeug.routing import Map, Rule

        self._app, self._role_of = app, role_of
        self._origins = {origin.encode() for origin in origins}
        rules = [
            Rule(path, methods=[method], endpoint=role)
            for (method, path), role in mlflow_routes().items()
        ]
        self._routes = Map(rules, merge_slashes=False).bind("")

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan" or scope.get("path") == _HEALTH:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        role = self._known(headers.get(b"authorization", b""))
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif role is None:
            asked = (b"www-authenticate", b'Basic realm="Yeoron", charset="UTF-8"')
            await _refuse(send, 401, "A login of the platform is needed.", asked)
        elif headers.get(b"origin", b"") not in {b"", *self._origins}:
            await _refuse(send, 403, "Pages of other origins are not answered.")
        elif (needed := self._needed(scope)) is None:
            await _refuse(send, 404, "This part of MLflow is not served here.")
        elif not allows(role, needed):
            await _refuse(send, 403, _READ_ONLY.format(needed=needed))
        else:
            await self._app(scope, receive, send)

    def _known(self, header: bytes) -> str | None:
        kind, _, given = header.partition(b" ")
        try:
            name, colon, password = base64.b64decode(given.strip()).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        return self._role_of(name, password) if colon and kind.lower() == b"basic" else None

    def _needed(self, scope: _Message) -> str | None:
        """The role that a request needs; None: it is for nothing that is served."""
        from werkzeug.exceptions import HTTPException

        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        try:
            role: str = self._routes.match(scope["path"], method)[0]
        except HTTPException:
            return None
        return role


_READ_ONLY = (
    "This account may read here; changing runs and models needs the role {needed}. "
    "이 계정으로는 보기만 할 수 있습니다. 실행과 모델을 바꾸려면 {needed} 역할이 필요합니다."
)


async def _refuse(send: _Send, status: int, text: str, *more: tuple[bytes, bytes]) -> None:
    """Refuse in the form in which MLflow's pages and clients read errors."""
    code = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}.get(status, "ENDPOINT_NOT_FOUND")
    body = json.dumps({"error_code": code, "message": text}, ensure_ascii=False)
    headers = [(b"content-type", b"application/json; charset=utf-8"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{body}\n".encode()})


def mlflow_app(settings: Settings) -> App:
    """MLflow's application on the platform's database and artifact folder, behind the login.

    Raises ConfigError where MLflow is missing or there is no login yet, PlatformError when its
    database cannot be used.
    """
    user, password = platform_login(settings.paths.airflow)
    if not password.isascii():
        # Python's HTTP clients send others in another encoding than browsers.
        raise ConfigError(
            f"{settings.paths.airflow}/passwords.json: ASCII letters and digits are accepted."
        )
    address = settings.database_address("mlflow")
    artifacts = settings.paths.mlflow.resolve() / "artifacts"
    # MLflow reads these when its application is imported; `mlflow server` sets the same.
    os.environ |= {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_ENABLE_AI_GATEWAY": "false",
        "MLFLOW_ENABLE_REMOTE_ASSISTANT": "false",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    try:
        from mlflow.server import constants

        os.environ |= {
            constants.BACKEND_STORE_URI_ENV_VAR: address,
            constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
            constants.ARTIFACTS_DESTINATION_ENV_VAR: str(artifacts),
            constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        }
        from mlflow.exceptions import MlflowException
        from mlflow.server.handlers import initialize_backend_stores

        app = _listed_app(mlflow_routes().keys())
    except ImportError as error:
        raise ConfigError(
            "MLflow is not installed, or another version of it: install the extra `mlflow`."
        ) from error
    try:
        initialize_backend_stores(address, address, "mlflow-artifacts:/")
    except MlflowException as error:
        raise PlatformError(f"MLflow's database: {str(error).splitlines()[0][:300]}") from error
    port = settings.ports.mlflow
    own = frozenset(f"http://{name}:{port}" for name in ("127.0.0.1", "localhost"))
    people = accounts(settings.page.accounts)

    def role_of(name: str, secret: str) -> str | None:
        if name == user:
            known = hmac.compare_digest(secret.encode(), password.encode())
            return OPERATOR if known else None
        person = people.log_in(name, secret)
        return None if person is None else person.role

    return LoginRequired(app, role_of, own)


def _listed_app(routes: Iterable[Route]) -> App:
    """MLflow's handlers of these routes, and no others.

    Artifacts go through its asynchronous routes, which do not hold whole files in memory.
    """
    from fastapi import FastAPI
    from mlflow.server.artifact_router import artifact_router
    from mlflow.server.fastapi_app import _EfficientWSGIMiddleware
    from mlflow.server.fastapi_security import init_fastapi_security

    listed = set(routes)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    init_fastapi_security(app)
    for route in artifact_router.routes:
        path = re.sub(r"\{(\w+):path\}", r"<path:\1>", route.path)
        if all((method, path) in listed for method in route.methods):
            app.router.routes.append(route)
    app.mount("/", _EfficientWSGIMiddleware(_listed_flask(listed)))
    return app


def _listed_flask(listed: set[Route]) -> Flask:
    from flask import Flask
    from mlflow.server import app as whole

    app = Flask("mlflow.server", static_folder=None)
    for rule in whole.url_map.iter_rules():
        methods = [method for method in rule.methods or () if (method, rule.rule) in listed]
        if methods:
            view = whole.view_functions[rule.endpoint]
            app.add_url_rule(rule.rule, rule.endpoint, view, methods=methods)
    app.before_request(_refuse_locations)
    return app


def _refuse_locations() -> tuple[dict[str, str], int] | None:
    """Refuse files outside the folder of artifacts: whoever names such a place could write there.

    Read with MLflow's own parser, so that the same field is looked at that its handler takes.
    """
    from flask import request
    from mlflow.exceptions import MlflowException
    from mlflow.protos.model_registry_pb2 import CreateModelVersion
    from mlflow.protos.service_pb2 import CreateExperiment
    from mlflow.server.handlers import _get_request_message

    if request.endpoint == "_create_experiment":
        field, accepted, shape = "artifact_location", _ARTIFACTS, CreateExperiment()
    elif request.endpoint == "_create_model_version":
        field, accepted, shape = "source", _SOURCES, CreateModelVersion()
    else:
        return None
    try:
        location = getattr(_get_request_message(shape), field)
    except MlflowException:
        return None  # its handler says what is wrong
    if not location or accepted.fullmatch(location):
        return None
    sentence = f"{field} {location[:200]!r}: only a path below mlflow-artifacts:/ is accepted here."
    return {"error_code": "INVALID_PARAMETER_VALUE", "message": sentence}, 400


def serve(settings: Settings) -> None:
    """Answer on loopback until a signal ends this process."""
    import uvicorn

    from embedding.kernel.connections import BoundedProtocol

    app, port = mlflow_app(settings), settings.ports.mlflow
    uvicorn.run(app, host="127.0.0.1", port=port, http=BoundedProtocol, ws="none")
