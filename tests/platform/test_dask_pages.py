"""Pages of Dask's scheduler and workers answer to names of this machine only."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dask
import httpx
import pytest
from distributed import LocalCluster

from embedding.kernel.certificates import ensure_certificate
from embedding.platform.services import dask_services
from embedding.settings import Settings
from waiting import until
from yeoron_lab.ports import lasting_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STRANGE = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "x[::1]")
OURS = ("localhost", "127.0.0.1", "[::1]")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Addresses of the pages of a scheduler and of its worker, started as `up` starts them."""
    home = tmp_path_factory.mktemp("dask")
    ports = {"dask": lasting_port(), "dask_dashboard": lasting_port()}
    settings = Settings(paths={"home": home}, ports=ports, cluster={"nodes": 1})
    ensure_certificate(settings.paths.secrets, "dask")
    with ExitStack() as stack:
        for service in dask_services(settings):
            with (home / f"{service.name}.log").open("wb") as log:
                process = stack.enter_context(
                    subprocess.Popen(service.command, stdout=log, stderr=subprocess.STDOUT)
                )
            stack.callback(process.kill)
        scheduler = f"http://127.0.0.1:{settings.ports.dask_dashboard}"
        until(lambda: workers(scheduler), lambda: told(home))
        yield [scheduler, *workers(scheduler)]


def workers(scheduler: str) -> list[str]:
    try:
        answer = httpx.get(f"{scheduler}/json/identity.json", trust_env=False)
    except httpx.HTTPError:
        time.sleep(0.1)
        return []
    found = answer.json()["workers"].values() if answer.status_code == 200 else []
    return [f"http://127.0.0.1:{one['services']['dashboard']}" for one in found]


def told(home: Path) -> str:
    return "\n".join(path.read_text()[-2000:] for path in home.glob("*.log"))


def test_a_page_of_another_site_reads_nothing(pages: list[str]) -> None:
    """One that is open in a browser here, whose name is resolved to loopback."""
    assert len(pages) == 2
    paths = ("/health", "/metrics", "/sitemap.json", "/status", "/info/main/logs.html", "/nothing")
    with httpx.Client(trust_env=False, timeout=60) as client:
        for page in pages:
            for path in paths:
                for name in STRANGE:
                    answer = client.get(page + path, headers={"Host": f"{name}:8787"})
                    assert (answer.status_code, answer.text) == (400, "Invalid host header"), path
                    answer = client.post(page + path, headers={"Host": name})
                    assert answer.status_code == 400, path
            for name in OURS:
                answer = client.get(f"{page}/health", headers={"Host": f"{name}:8787"})
                assert (answer.status_code, answer.text) == (200, "ok")
        for path in ("/status", "/info/main/workers.html"):
            assert client.get(pages[0] + path).status_code == 200, "the dashboard still works"


def test_a_silent_connection_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise any local user could hold all descriptors of the process for an hour."""
    monkeypatch.setattr("embedding.kernel.dask_pages.REQUEST_S", 0.2)
    preload = {"distributed.scheduler.preload": ["embedding.kernel.dask_pages"]}
    with (
        dask.config.set(preload),
        LocalCluster(
            n_workers=0,
            processes=False,
            protocol="inproc://",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            local_directory=str(tmp_path),
        ) as cluster,
    ):
        port = cluster.scheduler.http_server.port
        for sent in (b"", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as silent:
                silent.sendall(sent)
                while silent.recv(1 << 16):
                    pass


def test_the_scheduler_keeps_its_files_in_the_home(tmp_path: Path) -> None:
    """In /tmp another user could have taken its folder, and kept it from starting."""
    scheduler = dask_services(Settings(paths={"home": tmp_path}))[0]
    assert scheduler.environment["DASK_TEMPORARY_DIRECTORY"] == str(tmp_path / "dask")
