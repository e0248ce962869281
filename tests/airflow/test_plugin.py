"""The plugin in the real Airflow web application: what it registers, who may see the page, and what
each role may do there.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest

from embedding.settings import load_settings, platform_login
from embedding.web.tokens import ANALYST, OPERATOR, READER, AccessTokens, accounts
from embedding_airflow.links import DaskLink, MlflowLink, TrendsLink
from embedding_airflow.roles import role_of

ROOT = Path(__file__).parents[2]


class Web:
    """Sends requests to an ASGI application without a socket."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def request(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport,
                base_url="http://127.0.0.1:8080",
                cookies=given.pop("cookies", None),
            ) as client:
                return await client.request(method, path, **given)

        return asyncio.run(send())

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.request("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.request("POST", path, **given)


@pytest.fixture(scope="module")
def web(airflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Airflow's whole web application; Yeoron's state is an empty folder."""
    from airflow.api_fastapi.app import cached_app, purge_cached_app

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YEORON_PATHS__HOME", str(tmp_path_factory.mktemp("state")))
        purge_cached_app()
        yield Web(cached_app(apps="core"))
        purge_cached_app()


@pytest.fixture(scope="module")
def token(web: Web, airflow_home: Path) -> str:
    """A token of the login `admin`."""
    user, password = platform_login(airflow_home)
    answer = web.post("/auth/token", json={"username": user, "password": password})
    assert answer.status_code == 201
    return answer.json()["access_token"]


PATHS = [
    "/yeoron/",
    "/yeoron/static/app.js",
    "/yeoron/api/reports",
    "/yeoron/../yeoron/x",
    "/yeoron/openapi.json",
]


@pytest.mark.parametrize("path", PATHS)
def test_without_login_every_path_is_refused(web, path):
    assert web.get(path).status_code == 401
    assert web.get(path, headers={"Authorization": "Bearer wrong"}).status_code in {401, 403}
    assert web.get(path, cookies={"_token": "wrong"}).status_code in {401, 403}


def test_a_browser_without_login_is_led_there_and_back(web):
    browser = {"Accept": "text/html,application/xhtml+xml"}
    for path in ("/yeoron/", "/yeoron/word/%EB%A7%90?lang=ko"):
        answer = web.get(path, headers=browser)
        assert answer.status_code == 303
        login = urlsplit(answer.headers["location"])
        assert login.path == "/api/v2/auth/login"
        assert unquote(parse_qs(login.query)["next"][0]) == unquote(path)
        onward = web.get(answer.headers["location"])
        assert onward.status_code == 307
        assert "/auth/login" in onward.headers["location"]


def test_the_page_is_read_only(web, token):
    headers = {"Authorization": f"Bearer {token}"}
    assert web.post("/yeoron/", headers=headers).status_code == 405


def test_with_login_the_page_is_there(web, token):
    answer = web.get("/yeoron/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert "text/html" in answer.headers["content-type"]


def test_a_note_carries_the_name_of_the_login(web, token):
    headers = {"Authorization": f"Bearer {token}", "sec-fetch-site": "same-origin"}
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = web.request(
        "POST",
        "/yeoron/team/note",
        headers=headers | form,
        content="kind=word&about=x&text=hello&who=else",
    )
    assert answer.status_code == 303
    page = web.get("/yeoron/team", headers=headers).text
    assert "hello" in page
    assert "else" not in page.partition('class="notes"')[2].partition("</ul>")[0]
    assert web.request("POST", "/yeoron/team/note", headers=form).status_code == 401


def test_with_the_cookie_of_the_browser_too(web, token):
    assert web.get("/yeoron/", cookies={"_token": token}).status_code == 200


def test_a_token_of_the_page_opens_its_answers_alone(web):
    tokens = AccessTokens(load_settings().page.tokens)
    headers = {"Authorization": f"Bearer {tokens.make('a program')}"}
    answer = web.get("/yeoron/api/v1/windows", headers=headers)
    assert (answer.status_code, answer.json()) == (200, {"windows": []})
    schema = web.get("/yeoron/api/v1/openapi.json", headers=headers).json()
    assert schema["servers"] == [{"url": "/yeoron"}]
    assert web.get("/yeoron/", headers=headers).status_code == 404
    assert web.get("/api/v2/dags", headers=headers).status_code in {401, 403}
    tokens.withdraw("a program")
    answer = web.get("/yeoron/api/v1/windows", headers=headers)
    assert answer.status_code == 401
    assert "withdrawn" in answer.json()["error"]


def test_airflow_lists_the_page_in_its_navigation(web, token):
    answer = web.get("/api/v2/plugins", headers={"Authorization": f"Bearer {token}"})
    mine = [plugin for plugin in answer.json()["plugins"] if plugin["name"] == "yeoron"]
    assert len(mine) == 1
    view = mine[0]["external_views"][0]
    assert view["href"] == "/yeoron/"
    assert view["destination"] == "nav"
    assert view["url_route"] == "yeoron"
    assert mine[0]["source"] == "$PLUGINS_FOLDER/yeoron_plugin.py"


def test_no_plugin_failed_to_load(web, token):
    answer = web.get("/api/v2/plugins/importErrors", headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["import_errors"] == []


PROBE = """
import sys
from airflow import plugins_manager
plugins, errors = plugins_manager._get_plugins()
assert not errors, errors
assert [p.name for p in plugins if p.name == "yeoron"] == ["yeoron"]
heavy = {"torch", "pyarrow", "mlflow", "distributed", "numpy", "embedding.settings"}
print(sorted(heavy & set(sys.modules)))
from embedding_airflow.triggers import WindowTrigger
from airflow.sdk._shared.module_loading import import_string
print(import_string(WindowTrigger.__module__ + ".WindowTrigger") is WindowTrigger)
print([name for name in ("triggers", "sensors", "links", "windows") if name in sys.modules])
"""


def test_loading_the_plugin_is_light_and_executes_the_package_once(airflow_home):
    """`.airflowignore` hides the package: a second trigger class would never be found again."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], check=True, capture_output=True, text=True, timeout=150
    )
    assert done.stdout.splitlines()[-3:] == ["[]", "True", "[]"]


def test_links_know_the_addresses(monkeypatch):
    class Ran:
        mlflow_run = ("3", "abc")

    monkeypatch.setenv("YEORON_PORTS__MLFLOW", "5123")
    monkeypatch.setenv("YEORON_PORTS__AIRFLOW", "8123")
    monkeypatch.setenv("YEORON_PORTS__DASK_DASHBOARD", "8124")
    link = MlflowLink()
    assert link.get_link(Ran(), ti_key=None) == "http://127.0.0.1:5123/#/experiments/3/runs/abc"
    assert link.get_link(object(), ti_key=None) == "http://127.0.0.1:5123/#/experiments"
    assert DaskLink().get_link(object(), ti_key=None).startswith("http://127.0.0.1:8124/")
    assert TrendsLink().get_link(object(), ti_key=None) == "http://127.0.0.1:8123/yeoron/"
    Ran.snapshot_id = "2020-02 a"
    window = "http://127.0.0.1:8123/yeoron/window/2020-02%20a"
    assert TrendsLink().get_link(Ran(), ti_key=None) == window


def test_a_link_without_settings_is_empty_and_breaks_nothing(monkeypatch):
    monkeypatch.setenv("YEORON_PORTS__MLFLOW", "no number")
    assert MlflowLink().get_link(object(), ti_key=None) == ""


LOGIN = "/auth/login"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def logins(web: Web, airflow_home: Path) -> dict[str, tuple[str, str]]:
    people = accounts(load_settings().page.accounts)
    made = {role: (role, people.make(role, role)) for role in (READER, ANALYST, OPERATOR)}
    return {**made, "admin": platform_login(airflow_home)}


def token_of(web: Web, login: tuple[str, str]) -> str:
    body = {"username": login[0], "password": login[1]}
    answer = web.request("POST", "/auth/token", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["access_token"])


def bearer(web: Web, login: tuple[str, str]) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_of(web, login)}", "sec-fetch-site": "same-origin"}


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
    assert web.request(method, path, **given).status_code == 401
    for role, login in logins.items():
        headers = {**bearer(web, login), **given.get("headers", {})}
        answer = web.request(method, path, **{**given, "headers": headers})
        refused = answer.status_code in (401, 403)
        assert refused is (role not in may.split()), (role, answer.status_code, answer.text[:300])


def test_a_wrong_login_is_refused(web: Web, logins: dict[str, tuple[str, str]]) -> None:
    for name, password in (
        ("admin", "wrong"),
        (READER, logins[OPERATOR][1]),
        ("nobody", logins[READER][1]),
        ("", logins[READER][1]),
    ):
        answer = web.request("POST", "/auth/token", json={"username": name, "password": password})
        assert answer.status_code in (401, 422), name


@pytest.mark.parametrize(("language", "button"), [("en", "Log in"), ("ko", "로그인")])
def test_the_login_page_opens_and_leads_back(
    web: Web, logins: dict[str, tuple[str, str]], language: str, button: str
) -> None:
    page = web.request("GET", LOGIN, params={"lang": language, "next": "/yeoron/"})
    assert f">{button}</button>" in page.text
    assert "form-action 'self'" in page.headers["content-security-policy"]
    assert web.request("GET", "/auth/static/app.css").status_code == 200
    name, password = logins[READER]
    form = {"name": name, "token": password, "next": "/yeoron/"}
    answer = web.request("POST", LOGIN, data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/yeoron/")
    assert "HttpOnly" in answer.headers["set-cookie"]
    cookies = {"_token": answer.cookies["_token"]}
    assert web.request("GET", "/yeoron/", cookies=cookies).status_code == 200
    wrong = web.request("POST", LOGIN, data={**form, "token": "wrong"}, params={"lang": language})
    assert wrong.status_code == 403
    assert 'role="alert"' in wrong.text
    away = web.request("POST", LOGIN, data={**form, "next": "https://elsewhere.example/"})
    assert away.headers["location"] == "/"


def test_who_logged_out_is_out(web: Web, logins: dict[str, tuple[str, str]]) -> None:
    cookies = {"_token": token_of(web, logins[ANALYST])}
    assert web.request("GET", "/yeoron/", cookies=cookies).status_code == 200
    web.request("GET", "/api/v2/auth/logout", cookies=cookies)
    assert web.request("GET", "/yeoron/", cookies=cookies).status_code in (401, 403)


def test_a_login_ends_with_its_account(web: Web) -> None:
    people = accounts(load_settings().page.accounts)
    first = bearer(web, ("가람", people.make("가람", OPERATOR)))
    assert web.request("GET", "/api/v2/variables", headers=first).status_code == 200
    people.withdraw("가람")
    assert web.request("GET", "/api/v2/variables", headers=first).status_code in (401, 403)
    second = bearer(web, ("가람", people.make("가람", READER)))
    assert web.request("GET", "/api/v2/variables", headers=second).status_code == 403
    assert web.request("GET", "/yeoron/", headers=first).status_code in (401, 403)


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
