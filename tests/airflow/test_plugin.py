"""The plugin in the real Airflow web application: what it registers and who may see the page."""

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

from embedding.settings import platform_login
from embedding_airflow.links import DaskLink, MlflowLink, TrendsLink

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
    from embedding.settings import load_settings
    from embedding.web.tokens import AccessTokens

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
