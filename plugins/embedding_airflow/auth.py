"""Airflow's logins: the platform's own, and the accounts of `yeoron account`.

Airflow's SimpleAuthManager keeps passwords in the clear, takes its users from the settings at
start, and lets its role User start DAGs. Here accounts are digests in a file that is read when
somebody logs in, DAGs are for operators, and a login ends with the account that opened it.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from airflow.api_fastapi.app import AUTH_MANAGER_FASTAPI_APP_PREFIX, get_cookie_path
from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
from airflow.api_fastapi.auth.managers.simple.datamodels.login import LoginBody
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import (
    SimpleAuthManager,
    SimpleAuthManagerRole,
)
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import is_safe_url
from airflow.configuration import conf
from fastapi import FastAPI, HTTPException, Request
from starlette.responses import RedirectResponse, Response

from embedding.ask.answers import Answers
from embedding.settings import load_settings, platform_login
from embedding.web.headers import SecurityHeaders
from embedding.web.login import Tries, read_form
from embedding.web.site import STATIC_TYPES, PageRequest, Site, Stream
from embedding.web.tokens import AccessTokens, accounts
from embedding_airflow.environment import USER
from embedding_airflow.roles import AIRFLOW_ROLES

_OPENED_BY = "yeoron"
"""Claim of a token: which secret opened it."""


class AccountUser(SimpleAuthManagerUser):
    """A user, and what says which secret was shown at the login."""

    def __init__(self, *, username: str, role: str, opened_by: str) -> None:
        super().__init__(username=username, role=role)
        self.opened_by = opened_by


class AccountAuthManager(SimpleAuthManager):
    """Who may use this Airflow."""

    def init(self) -> None:
        """Nothing to prepare: the accounts are looked up when they are needed."""

    @cached_property
    def _people(self) -> AccessTokens:
        return accounts(load_settings().page.accounts)

    def log_in(self, name: str, password: str) -> AccountUser | None:
        """The user of a name and a password that belong together."""
        if name == USER:
            known = hmac.compare_digest(password.encode(), _password().encode())
            return self._user(USER, _mark()) if known else None
        person = self._people.log_in(name, password)
        return None if person is None else self._user(person.name, person.digest)

    def _user(self, name: str, digest: str) -> AccountUser | None:
        """The user whose secret is the one that this digest or mark is of."""
        if name == USER:
            same = hmac.compare_digest(digest, _mark())
            return AccountUser(username=USER, role="admin", opened_by=digest) if same else None
        person = self._people.find(digest)
        if person is None or person.name != name:
            return None
        return AccountUser(username=name, role=AIRFLOW_ROLES[person.role], opened_by=digest)

    def serialize_user(self, user: SimpleAuthManagerUser) -> dict[str, Any]:
        return {"sub": user.username, _OPENED_BY: getattr(user, "opened_by", "")}

    def deserialize_user(self, token: dict[str, Any]) -> SimpleAuthManagerUser:
        """The user of a token, with the role that the account has now.

        Raises ValueError where what opened it is not accepted any more.
        """
        user = self._user(token["sub"], token[_OPENED_BY])
        if user is None:
            raise ValueError("the account was withdrawn, or has another password now")
        return user

    def is_authorized_dag(self, *, method: Any, user: SimpleAuthManagerUser, **more: Any) -> bool:
        """Everybody sees DAGs; operators start and change them."""
        del more
        viewer, operator = SimpleAuthManagerRole.VIEWER, SimpleAuthManagerRole.OP
        needed = viewer if method == "GET" else operator
        return bool(self._is_authorized(method=method, allow_role=needed, user=user))

    def is_authorized_hitl_task(
        self, *, assigned_users: set[Any], user: SimpleAuthManagerUser
    ) -> bool:
        """Operators answer what a task asks."""
        del assigned_users
        role = SimpleAuthManagerRole.OP
        return bool(self._is_authorized(method="POST", allow_role=role, user=user))

    def get_url_login(self, **kwargs: Any) -> str:
        asked = f"?{urlencode({'next': kwargs['next_url']})}" if kwargs.get("next_url") else ""
        return f"{AUTH_MANAGER_FASTAPI_APP_PREFIX}/login{asked}"

    def get_fastapi_app(self) -> FastAPI:
        """The login page in both languages, and `/token` for programs."""
        app = FastAPI(title="Yeoron", docs_url=None, redoc_url=None, openapi_url=None)
        app.add_middleware(SecurityHeaders)
        tries, site = Tries(), cache(_site)

        @app.get("/login")
        def page(request: Request, next: str = "/") -> Response:  # noqa: A002
            return PageRequest(site(), request).render("login.html", next=next, wrong=False, wait=0)

        @app.get("/static/{name}")
        def static(name: str) -> Response:
            if name not in STATIC_TYPES:
                raise HTTPException(404)
            return Response(site().static[name], media_type=STATIC_TYPES[name])

        @app.post("/login")
        async def enter(request: Request) -> Response:
            form = await read_form(request)
            target = form.get("next", "/")
            if not is_safe_url(target, request=request):
                target = "/"
            user = self._tried(request, tries, form.get("name", ""), form.get("token", ""))
            if isinstance(user, int):
                code = 429 if user else 403
                return PageRequest(site(), request).render(
                    "login.html", code, next=target, wrong=True, wait=user
                )
            response = RedirectResponse(target, 303)
            response.set_cookie(
                COOKIE_NAME_JWT_TOKEN,
                self.generate_jwt(user),
                path=get_cookie_path(),
                secure=request.base_url.scheme == "https",
                httponly=True,
                samesite="lax",
            )
            return response

        @app.post("/token", status_code=201)
        @app.post("/token/cli", status_code=201)
        def token(request: Request, body: LoginBody) -> dict[str, str]:
            user = self._tried(request, tries, body.username, body.password)
            if isinstance(user, int):
                raise HTTPException(429 if user else 401, "name and password do not match")
            return {"access_token": self.generate_jwt(user)}

        return app

    def _tried(self, request: Request, tries: Tries, name: str, password: str) -> AccountUser | int:
        """The user; or, for what is wrong, the seconds that this client has to wait."""
        user = self.log_in(name, password)
        if user is not None:
            return user
        client = request.client.host if request.client else ""
        wait = tries.wait(client)
        if not wait:
            tries.note(client)
        return wait


def _site() -> Site:
    config = load_settings().page
    return Site(config, Answers(config), Stream(None, 1.0), None)


def _mark() -> str:
    """Says in a token which password of the platform's own login opened it.

    Keyed: that password may be a chosen one, which a plain digest would let somebody guess.
    """
    key = conf.get_mandatory_value("api_auth", "jwt_secret").encode()
    return hmac.new(key, _password().encode(), hashlib.sha256).hexdigest()


def _password() -> str:
    return platform_login(Path(SimpleAuthManager.get_generated_password_file()).parent)[1]
