"""MLflow's server, open to who shows the platform's login.

Each request carries the user and the password of Airflow's login (HTTP Basic), which browsers and
MLflow's own clients know how to send. MLflow's own `basic-auth` app keeps users in a database of
its own and needs another package; here there is one person to know.
"""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from embedding.kernel.errors import ConfigError, PlatformError
from embedding.settings import Settings, platform_login

_HEALTH = "/health"
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
App = Callable[[_Message, _Receive, _Send], Awaitable[None]]
"""An ASGI application."""


class LoginRequired:
    """Hands on requests that carry the login, and those for /health; others get 401.

    A request of a page of another origin gets 403: a browser sends the login with it, too.

    origins  from which pages may ask
    """

    def __init__(self, app: App, user: str, password: str, origins: frozenset[str]) -> None:
        self._app, self._origins = app, {each.encode() for each in origins}
        self._expected = base64.b64encode(f"{user}:{password}".encode())

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan" or scope.get("path") == _HEALTH:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        known = hmac.compare_digest(given.strip(), self._expected)
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif kind.lower() != b"basic" or not known:
            asked = (b"www-authenticate", b'Basic realm="Yeoron", charset="UTF-8"')
            await _refuse(send, 401, "The platform's login is needed.", asked)
        elif headers.get(b"origin", b"") not in {b"", *self._origins}:
            await _refuse(send, 403, "Pages of other origins are not answered.")
        else:
            await self._app(scope, receive, send)


async def _refuse(send: _Send, status: int, text: str, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", b"text/plain"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})


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
    try:
        from mlflow.server import constants

        # MLflow reads these when its application is imported; `mlflow server` sets the same.
        os.environ |= {
            constants.BACKEND_STORE_URI_ENV_VAR: address,
            constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
            constants.ARTIFACTS_DESTINATION_ENV_VAR: str(artifacts),
            constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        }
        from mlflow.exceptions import MlflowException
        from mlflow.server.fastapi_app import app
        from mlflow.server.handlers import initialize_backend_stores
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
    return LoginRequired(app, user, password, own)


def serve(settings: Settings) -> None:
    """Answer on loopback until a signal ends this process."""
    import uvicorn

    uvicorn.run(mlflow_app(settings), host="127.0.0.1", port=settings.ports.mlflow)
