"""Accounts in Airflow: what each role may do there, and how a login ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from embedding.settings import load_settings, platform_login
from embedding.web.tokens import ANALYST, OPERATOR, READER, accounts
from embedding_airflow.roles import role_of

LOGIN = "/auth/login"
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Web:
    """Sends requests to an ASGI application without a socket; keeps no cookies."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(
                transport=transport,
                base_url="http://127.0.0.1:8080",
                cookies=given.pop("cookies", None),
            ) as client:
                return await client.request(method, path, **given)

        return asyncio.run(send())


@pytest.fixture(scope="module")
def web(airflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    from airflow.api_fastapi.app import cached_app, purge_cached_app

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YEORON_PATHS__HOME", str(tmp_path_factory.mktemp("state")))
        purge_cached_app()
        yield Web(cached_app(apps="core"))
        purge_cached_app()


@pytest.fixture(scope="module")
def logins(web: Web, airflow_home: Path) -> dict[str, tuple[str, str]]:
    people = accounts(load_settings().page.accounts)
    made = {role: (role, people.make(role, role)) for role in (READER, ANALYST, OPERATOR)}
    return {**made, "admin": platform_login(airflow_home)}


def token(web: Web, login: tuple[str, str]) -> str:
    body = {"username": login[0], "password": login[1]}
    answer = web.ask("POST", "/auth/token", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["access_token"])


def bearer(web: Web, login: tuple[str, str]) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(web, login)}", "sec-fetch-site": "same-origin"}


ASKED = [
    # what, a call, and the roles that may
    ("read the page", ("GET", "/yeoron/", {}), "reader analyst operator admin"),
    ("read the team's page", ("GET", "/yeoron/team", {}), "reader analyst operator admin"),
    (
        "write a note",
        ("POST", "/yeoron/team/note", {"content": "kind=word&about=x&text=y", "headers": FORM}),
        "analyst operator admin",
    ),
    (
        "watch a word for all",
        ("POST", "/yeoron/team/watch", {"content": "word=x&alert=on", "headers": FORM}),
        "analyst operator admin",
    ),
    ("see DAGs", ("GET", "/api/v2/dags", {}), "reader analyst operator admin"),
    (
        "start a DAG",
        ("POST", "/api/v2/dags/rollback/dagRuns", {"json": {"logical_date": None}}),
        "operator admin",
    ),
    (
        "pause a DAG",
        ("PATCH", "/api/v2/dags/rollback", {"json": {"is_paused": True}}),
        "operator admin",
    ),
    (
        "clear all runs",
        ("POST", "/api/v2/dags/x/clearTaskInstances", {"json": {}}),
        "operator admin",
    ),
    ("read variables", ("GET", "/api/v2/variables", {}), "operator admin"),
    (
        "write variables",
        ("POST", "/api/v2/variables", {"json": {"key": "a", "value": "b"}}),
        "operator admin",
    ),
    ("read connections", ("GET", "/api/v2/connections", {}), "operator admin"),
]


@pytest.mark.parametrize(("call", "may"), [each[1:] for each in ASKED], ids=[a[0] for a in ASKED])
def test_the_access_matrix(
    web: Web, logins: dict[str, tuple[str, str]], call: tuple[str, str, Any], may: str
) -> None:
    method, path, given = call
    assert web.ask(method, path, **given).status_code == 401
    for role, login in logins.items():
        headers = {**bearer(web, login), **given.get("headers", {})}
        answer = web.ask(method, path, **{**given, "headers": headers})
        refused = answer.status_code in (401, 403)
        assert refused is (role not in may.split()), (role, answer.status_code, answer.text[:300])


def test_a_wrong_login_is_refused(web: Web, logins: dict[str, tuple[str, str]]) -> None:
    for name, password in (
        ("admin", "wrong"),
        (READER, logins[OPERATOR][1]),
        ("nobody", logins[READER][1]),
        ("", logins[READER][1]),
    ):
        answer = web.ask("POST", "/auth/token", json={"username": name, "password": password})
        assert answer.status_code in (401, 422), name


@pytest.mark.parametrize(("language", "button"), [("en", "Log in"), ("ko", "로그인")])
def test_the_login_page_opens_and_leads_back(
    web: Web, logins: dict[str, tuple[str, str]], language: str, button: str
) -> None:
    page = web.ask("GET", LOGIN, params={"lang": language, "next": "/yeoron/"})
    assert f">{button}</button>" in page.text
    assert "form-action 'self'" in page.headers["content-security-policy"]
    assert web.ask("GET", "/auth/static/app.css").status_code == 200
    name, password = logins[READER]
    form = {"name": name, "token": password, "next": "/yeoron/"}
    answer = web.ask("POST", LOGIN, data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/yeoron/")
    assert "HttpOnly" in answer.headers["set-cookie"]
    cookies = {"_token": answer.cookies["_token"]}
    assert web.ask("GET", "/yeoron/", cookies=cookies).status_code == 200
    wrong = web.ask("POST", LOGIN, data={**form, "token": "wrong"}, params={"lang": language})
    assert wrong.status_code == 403
    assert 'role="alert"' in wrong.text
    away = web.ask("POST", LOGIN, data={**form, "next": "https://elsewhere.example/"})
    assert away.headers["location"] == "/"


def test_who_logged_out_is_out(web: Web, logins: dict[str, tuple[str, str]]) -> None:
    cookies = {"_token": token(web, logins[ANALYST])}
    assert web.ask("GET", "/yeoron/", cookies=cookies).status_code == 200
    web.ask("GET", "/api/v2/auth/logout", cookies=cookies)
    assert web.ask("GET", "/yeoron/", cookies=cookies).status_code in (401, 403)


def test_a_login_ends_with_its_account(web: Web) -> None:
    people = accounts(load_settings().page.accounts)
    first = bearer(web, ("가람", people.make("가람", OPERATOR)))
    assert web.ask("GET", "/api/v2/variables", headers=first).status_code == 200
    people.withdraw("가람")
    assert web.ask("GET", "/api/v2/variables", headers=first).status_code in (401, 403)
    second = bearer(web, ("가람", people.make("가람", READER)))
    assert web.ask("GET", "/api/v2/variables", headers=second).status_code == 403
    assert web.ask("GET", "/yeoron/", headers=first).status_code in (401, 403)


class Role:
    def __init__(self, name: str) -> None:
        self.name = name


class User:
    """As FAB's and SimpleAuthManager's users are."""

    def __init__(self, role: str | None = None, *roles: str) -> None:
        self.role = role
        self.roles = [Role(name) for name in roles]


def test_roles_of_other_auth_managers_are_understood() -> None:
    assert [role_of(User(role)) for role in ("viewer", "USER", "Op", "ADMIN", "x", None)] == [
        *(READER, ANALYST, OPERATOR, OPERATOR, READER, READER)
    ]
    assert role_of(User(None, "Viewer", "User")) == ANALYST
    assert role_of(User(None, "Public")) == READER
    assert role_of(User(None, "Admin")) == OPERATOR
