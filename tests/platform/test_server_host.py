"""The parameter server with two shards on a host of its own, three hosts of nodes, and control.

Each host is a network namespace that sees no other's files, and its clock is up to an hour off.
Database and object store are on a fifth.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from netns import NETWORK, Bridge, Host, join, refused_namespaces, source
from pgserver import PostgresServer, binaries, owner
from waiting import until

CONTROL, SERVER, STORES = (f"{NETWORK}.{i}" for i in (1, 2, 9))
SKEWS = {"control": 0, "server": 3600, "first": -3600, "second": 1800, "third": 3600}


def refused() -> str | None:
    """Why this is not played here; None where it is."""
    if not os.environ.get("HOSTS_TEST"):
        return "it takes minutes: `make hosts` runs it"
    if binaries() is None or shutil.which("setpriv") is None:
        return "there is no PostgreSQL server, or no setpriv, on this machine"
    if shutil.which("cc") is None:
        return "there is no C compiler, which makes clocks that are off"
    return refused_namespaces()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif((reason := refused()) is not None, reason=str(reason)),
]


@dataclass(frozen=True)
class World:
    """The hosts of a platform, and the folder that plays the web."""

    control: Host
    server: Host
    nodes: tuple[Host, ...]
    web: Path

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.control.ask("status")
        return found

    def documents(self, name: str) -> int:
        return int(self.status().get("sources", {}).get(name, {}).get("documents", 0))

    def publish(self) -> None:
        self.control.ask("publish")


@contextmanager
def stores(host: Host, folder: Path) -> Iterator[str]:
    """PostgreSQL and an object store on a host; the frontier's address."""
    pytest.importorskip("moto.server", reason="moto is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    programs, account = binaries(), owner()
    assert programs is not None
    postgres = PostgresServer(folder, programs)
    postgres.make()
    rules = folder / "data" / "pg_hba.conf"
    rules.write_text(f"host all all {NETWORK}.0/24 trust\n{rules.read_text()}")
    drop = (
        "setpriv",
        f"--reuid={account['user']}",
        f"--regid={account['group']}",
        "--clear-groups",
    )
    options = (f"listen_addresses={STORES}", f"unix_socket_directories={folder}", "fsync=off")
    database = (
        *(drop if account else ()),
        *(str(programs / "postgres"), "-D", str(folder / "data")),
        *(part for each in options for part in ("-c", each)),
    )
    objects = (sys.executable, "-m", "moto.server", "-H", STORES, "-p", "5000")
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [
        subprocess.Popen(host.inside(*each), cwd=folder, **quiet) for each in (database, objects)
    ]
    try:
        until(lambda: there(postgres), "no PostgreSQL")
        postgres.run("CREATE DATABASE frontier")
        bucket = "import s3fs; s3fs.S3FileSystem().mkdir('yeoron')"
        until(lambda: host.run("-c", bucket, check=False).returncode == 0, "no object store")
        yield f"postgresql+psycopg://yeoron@{STORES}/frontier"
    finally:
        for process in running:
            process.kill()
            process.wait(300)


def there(postgres: PostgresServer) -> bool:
    try:
        postgres.run("SELECT 1")
    except Exception:  # noqa: BLE001 - whatever it says while it starts
        return False
    return True


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = tmp_path / "clock.so"
    code = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", clock, code, "-ldl"], check=True)
    bridge = Bridge(f"yb{os.getpid()}")
    folders = {name: tmp_path / name for name in SKEWS}
    address_of = {name: f"{NETWORK}.{i}" for i, name in enumerate(SKEWS, start=1)}
    keys = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{STORES}:5000",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    web = tmp_path / "web"
    web.mkdir()
    hosts = {}
    for i, (name, skew) in enumerate(SKEWS.items(), start=1):
        folders[name].mkdir()
        hosts[name] = Host(
            f"y{os.getpid()}{i}",
            address_of[name],
            folders[name],
            bridge,
            [folder for other, folder in folders.items() if other != name],
            {**keys, "LD_PRELOAD": str(clock), "SKEW_SECONDS": str(skew)},
        )
    # A socket's path must be short, and each folder above it open to the server's account.
    place = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    away = Host(f"y{os.getpid()}9", STORES, place, bridge, list(folders.values()), keys)
    try:
        bridge.start()
        for host in (*hosts.values(), away):
            host.start()
        with stores(away, place) as frontier:
            for name, host in hosts.items():
                host.settings.write_text(settings_of(name, host, web, frontier), encoding="utf-8")
            nodes = tuple(hosts[name] for name in ("first", "second", "third"))
            yield World(hosts["control"], hosts["server"], nodes, web)
    finally:
        for host in (*reversed(hosts.values()), away):
            host.end()
        bridge.end()
        shutil.rmtree(place, ignore_errors=True)


def settings_of(name: str, host: Host, web: Path, frontier: str) -> str:
    paths = f'[paths]\nhome = "{host.home}"\nsources = "{web}/sources.toml"\n'
    if name not in ("control", "server"):
        return paths + "[hosts]\nworkers = 1\n"
    learning = (
        '[server]\nshards = 2\ncheckpoint_every_s = 2\nsnapshots = "s3://yeoron/snapshots"\n'
        "min_authors = 1\nmin_sources = 1\n"
    )
    if name == "server":
        return paths + learning
    return (
        f'{paths}{learning}[hosts]\naddress = "{CONTROL}"\nserver = "{SERVER}"\n'
        f'[cluster]\nnodes = 3\n[crawl]\nfrontier = "{frontier}"\n[text]\ntokenizer = "script"\n'
    )


def test_the_server_has_a_host_of_its_own(world: World) -> None:
    control, nodes = world.control, world.nodes
    clock = float(nodes[0].run("-c", "import time; print(time.time())").stdout)
    assert abs(clock + 3600 - time.time()) < 60, "its clock is an hour behind"
    read = {name: source(world.web, name, "2021-01-03") for name in ("a", "bb", "ccc")}
    control.ask("start")
    # Without a server the pages say so, and all else runs.
    assert control.ask("status")["status"] == "away"

    invitation = control.ask("joining", "server")
    join(world.server, invitation)
    again = join(nodes[0], invitation, check=False)
    assert again.returncode == 2
    assert "unknown or was used before" in again.stderr
    until(lambda: "nodes" in world.status(), world.status)

    for host in nodes:
        join(host, control.ask("joining"))
    until(lambda: len(control.ask("workers")) == 3, "the workers did not come", 300)
    control.ask("attach")
    learnt(world, read)

    # A host of nodes is cut off, and comes back.
    nodes[0].cable("down")
    read["dddd"] = source(world.web, "dddd", "2021-01-02")
    world.publish()
    time.sleep(10)
    nodes[0].cable("up")
    learnt(world, read)

    # So is the server's: nodes wait, and go on.
    world.server.cable("down")
    read["eeeee"] = source(world.web, "eeeee", "2021-01-02")
    world.publish()
    until(lambda: world.status().get("status") == "away", world.status)
    world.server.cable("up")
    learnt(world, read)

    # The server's host dies, and is started again; so does one of nodes, for good.
    world.server.die()
    nodes[1].die()
    read["ffffff"] = source(world.web, "ffffff", "2021-01-02")
    world.publish()
    until(lambda: world.status().get("status") == "away", world.status)
    world.server.yeoron("up")
    learnt(world, read)

    brought(nodes[2], control)
    found = control.ask("cut", "2021-01-01T00:00:00+00:00", "2021-01-02T00:00:00+00:00")
    assert found["words"] > 10
    secrets = world.server.home / "secrets"
    assert not (secrets / "dask-key.pem").exists(), "the server's host is in no cluster"


def learnt(world: World, read: dict[str, int]) -> None:
    """Each document of each source was learnt, and none of them twice."""

    def numbers() -> dict[str, int]:
        return {name: world.documents(name) for name in read}

    until(lambda: numbers() == read, lambda: (numbers(), read, world.status()), 400)
    time.sleep(3)
    assert numbers() == read


def brought(host: Host, control: Host) -> None:
    """Evidence that lies on a host of nodes comes to the control host, and lies there alone."""
    when = datetime(2021, 1, 1, 12, tzinfo=UTC)
    day = int(when.timestamp()) // 86_400
    row = {"word": "가사", "source": "a", "day": day, "hash": 7, "url": "https://a.example/1"}
    row["published"] = when.timestamp()
    table = pa.Table.from_pylist([row], schema=EVIDENCE_SCHEMA)
    EvidenceStore(host.home / "evidence").add(table, "yeoron-node-2")
    page = EvidenceStore(control.home / "evidence")
    start, end = datetime(2021, 1, 1, tzinfo=UTC), datetime(2021, 1, 2, tzinfo=UTC)
    until(lambda: page.find("가사", start, end), "the address did not come")
    assert [one.url for one in page.find("가사", start, end)] == ["https://a.example/1"]
    assert not list((host.home / "evidence").glob("*/*.parquet"))
