"""Yeoron as a provider: what the real command line lists, and what the connection is used for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
CLIENT = httpx.Client
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def airflow(installed: Path, *command: str) -> list[dict[str, str]]:
    """A command of the real Airflow, its answer as rows."""
    path = os.pathsep.join(map(str, (installed, ROOT, ROOT / "plugins", ROOT / "neighbours")))
    done = subprocess.run(
        [sys.executable, "-m", "airflow", *command, "--output", "json"],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
        timeout=150,
    )
    return json.loads(done.stdout[done.stdout.index("[") :])


def test_the_command_line_lists_the_provider(airflow_home, installed):
    (mine,) = [
        row for row in airflow(installed, "providers", "list") if row["package_name"] == "yeoron"
    ]
    assert mine["version"] == "9.9.9"


def test_the_command_line_lists_the_connection_type(airflow_home, installed):
    rows = airflow(installed, "providers", "hooks")
    (mine,) = [row for row in rows if row["connection_type"] == "yeoron"]
    assert mine["class"] == "embedding_airflow.hook.YeoronHook"
    assert mine["hook_name"] == "Yeoron"
    assert mine["conn_id_attribute_name"] == "yeoron_conn_id"


def test_what_the_provider_names_is_there():
    from importlib import import_module

    from embedding_airflow.provider import get_provider_info

    info = get_provider_info()
    assert info["package-name"] == PROJECT["name"]
    for kind in ("operators", "sensors", "triggers", "hooks"):
        for module in info[kind][0]["python-modules"]:
            import_module(module)
    for path in (info["connection-types"][0]["hook-class-name"], *info["extra-links"]):
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name)


@pytest.fixture
def hook(monkeypatch):
    """A hook whose platform is the function that a test gives."""
    from airflow.sdk import Connection

    from embedding_airflow import hook as module

    def make(answer, host="http://127.0.0.1:8080/yeoron/", token="yeoron_abc"):
        transport = httpx.MockTransport(answer)
        monkeypatch.setattr(
            module.httpx, "Client", lambda **given: CLIENT(transport=transport, **given)
        )
        made = module.YeoronHook()
        connection = Connection(conn_id="c", conn_type="yeoron", host=host, password=token)
        monkeypatch.setattr(made, "get_connection", lambda _: connection)
        return made

    return make


def test_the_hook_reads_with_address_and_token(hook):
    seen = []

    def answer(request):
        seen.append((str(request.url), request.headers["Authorization"]))
        return httpx.Response(200, json={"windows": [{"label": "2020-02"}]})

    made = hook(answer)
    assert made.read("windows", limit=3) == {"windows": [{"label": "2020-02"}]}
    url = "http://127.0.0.1:8080/yeoron/api/v1/windows?limit=3"
    assert seen == [(url, "Bearer yeoron_abc")]
    assert made.test_connection() == (True, "The page answers; it has 1 windows.")


def test_a_refused_token_is_not_retried_and_an_absent_platform_is(hook):
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    refused = hook(lambda _: httpx.Response(401, json={"error": "the token was withdrawn."}))
    with pytest.raises(AirflowFailException, match=r"HTTP 401: the token was withdrawn\."):
        refused.read("windows")
    assert refused.test_connection()[0] is False

    def away(request):
        raise httpx.ConnectError("refused", request=request)

    for answer in (away, lambda _: httpx.Response(503, json={"error": "not yet."})):
        with pytest.raises(AirflowException) as caught:
            hook(answer).read("stories")
        assert not isinstance(caught.value, AirflowFailException)


@pytest.mark.parametrize("host", [None, "", "example.org", "ftp://example.org"])
def test_a_connection_without_an_address_is_refused(hook, host):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="the address of the trends page is accepted"):
        hook(lambda _: httpx.Response(200, json={}), host=host).read("windows")
