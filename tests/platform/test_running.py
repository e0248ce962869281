"""The whole platform as `yeoron up` starts it: which doors it opens, and to whom.

It runs on PostgreSQL where this machine has one, else on SQLite, as `make demo` does.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy.engine import make_url

from embedding.cluster import attach_pool, dask_client, stop_pool
from embedding.evaluation.runs import connect
from embedding.exchange.peer import Channel
from embedding.kernel.certificates import make_certificate
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.platform.addresses import experiment_url
from embedding.platform.operate import bring_down
from embedding.platform.processes import marked
from embedding.settings import Settings, load_settings, platform_login
from embedding.worker.process.forking import forked
from pgserver import KEYED, PostgresServer, binaries, running_postgres
from waiting import until
from yeoron_demo.airflow_api import AirflowApi
from yeoron_lab.ports import lasting_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
SECRET, PASSWORD = "OPERATORS-COOKIE", "DATABASES-PASSWORD"
SOURCES = (
    '[[source]]\nname = "board"\nkind = "feed"\nurl = "http://127.0.0.1:9/feed.xml"\n'
    f'cookies = {{ session = "{SECRET}" }}\n'
)
TASKS = 3
DAG = f"""
import os, time
from airflow.sdk import dag, task

@dag(schedule=None, catchup=False)
def meeting():
    @task(retries=3, retry_delay=1)
    def meet(at):
        folder = os.environ["TEST_FOLDER"]
        open(f"{{folder}}/task-{{at}}", "w").close()
        deadline = time.monotonic() + 300
        while not os.path.exists(f"{{folder}}/over") and time.monotonic() < deadline:
            time.sleep(0.2)
        return at
    meet.expand(at=list(range({TASKS})))

meeting()
"""


@dataclass(frozen=True)
class Place:
    """A platform that runs, its folder, and its database server."""

    settings: Settings
    folder: Path
    postgres: PostgresServer | None

    def yeoron(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the settings and the environment of the platform."""
        given = {k: v for k, v in os.environ.items() if not k.startswith(("YEORON_", "AIRFLOW"))}
        # A list, as the environment gives one.
        given["YEORON_CRAWL__ALLOW_PRIVATE_HOSTS"] = '["127.0.0.1:9"]'
        bundle = {
            "name": "tests",
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": str(self.folder / "dags")},
        }
        given["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"] = json.dumps([bundle])
        given["TEST_FOLDER"] = str(self.folder)
        file = str(self.folder / "yeoron.toml")
        done = subprocess.run(
            [sys.executable, "-m", "embedding.cli", "--settings", file, *arguments],
            cwd=ROOT,
            env=given,
            timeout=600,
            capture_output=True,
            text=True,
            umask=0o022,
        )
        assert done.returncode == 0, done.stderr
        return done


@contextlib.contextmanager
def database(folder: Path) -> Iterator[tuple[PostgresServer | None, str]]:
    """A server and the settings of a database there; neither where there is no PostgreSQL."""
    if binaries() is None:
        yield None, ""
        return
    with running_postgres() as postgres:
        postgres.run(f"CREATE ROLE {KEYED} LOGIN PASSWORD '{PASSWORD}'")
        name = make_url(postgres.new_database(f"OWNER {KEYED}")).database
        (folder / "pass").write_text(f"*:*:*:{KEYED}:{PASSWORD}\n", encoding="utf-8")
        (folder / "pass").chmod(0o600)
        where = f'[database]\nurl = "{postgres.address(name, KEYED)}"\n'
        yield postgres, f'{where}passfile = "{folder / "pass"}"\nairflow_tasks = {TASKS}\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A platform that runs, started by the command itself."""
    folder = tmp_path_factory.mktemp("platform")
    (folder / "sources.toml").write_text(SOURCES, encoding="utf-8")
    (folder / "dags").mkdir()
    (folder / "dags" / "meeting.py").write_text(DAG, encoding="utf-8")
    ports = {name: lasting_port() for name in ("airflow", "mlflow", "dask", "dask_dashboard")}
    file = folder / "yeoron.toml"
    with database(folder) as (postgres, where):
        file.write_text(
            f'[paths]\nhome = "{folder / "home"}"\nsources = "{folder / "sources.toml"}"\n'
            '[cluster]\nnodes = 1\n[text]\ntokenizer = "whitespace"\n'
            f"[server]\nport = {lasting_port()}\nhttp_port = {lasting_port()}\n"
            "[ports]\n" + "".join(f"{name} = {port}\n" for name, port in ports.items()) + where,
            encoding="utf-8",
        )
        found = Place(load_settings(file), folder, postgres)
        try:
            found.yeoron("up")
            yield found
        finally:
            bring_down(found.settings)


@pytest.fixture
def platform(place: Place) -> Settings:
    return place.settings


def listening(settings: Settings) -> list[tuple[str, int, str]]:
    """Address, port and owner of every TCP socket on which the platform's processes listen."""
    found = []
    for process in marked(settings.paths.home):
        try:
            owner = " ".join(process.cmdline())[:120]
            found += [
                (each.laddr.ip, each.laddr.port, owner)
                for each in process.net_connections(kind="inet")
                if each.status == psutil.CONN_LISTEN
            ]
        except psutil.NoSuchProcess:
            continue
    return sorted(set(found))


def test_every_door_is_on_loopback(platform: Settings) -> None:
    doors = listening(platform)
    known = {port for _, port, _ in doors}
    ports = platform.ports
    assert {
        *(ports.airflow, ports.mlflow, ports.dask, ports.dask_dashboard),
        *(platform.server.port, platform.server.http_port),
    } <= known
    # Tasks and pages of the one worker: it is looked at, whatever it calls itself.
    assert sum("dask" in owner and "worker" in owner for _, _, owner in doors) == 2, doors
    # gRPC listens on IPv4 through an IPv6 socket.
    plain = [(ip.removeprefix("::ffff:"), port, owner) for ip, port, owner in doors]
    assert [door for door in plain if not ipaddress.ip_address(door[0]).is_loopback] == []


def test_mlflow_asks_for_the_login(platform: Settings) -> None:
    search = "/api/2.0/mlflow/experiments/search?max_results=1"
    bare = httpx.get(f"{platform.mlflow_url}{search}", timeout=60, trust_env=False)
    assert bare.status_code == 401
    known = httpx.get(f"{platform.tracking_address}{search}", timeout=60, trust_env=False)
    assert known.status_code == 200
    assert "/experiments/" in experiment_url(platform)


def test_state_is_its_owners_alone(platform: Settings) -> None:
    """Although the command was started with the usual umask."""
    home = platform.paths.home
    assert home.stat().st_mode & 0o777 == 0o700
    held = [path for path in home.rglob("*") if not path.is_symlink()]
    assert {"airflow", "mlflow", "checkpoints", "logs"} <= {path.name for path in held}
    assert [str(path) for path in held if path.stat().st_mode & 0o077] == []


def test_services_have_the_environment_as_it_was_given(platform: Settings) -> None:
    held = [process.environ() for process in marked(platform.paths.home)]
    name = "YEORON_CRAWL__ALLOW_PRIVATE_HOSTS"
    assert [each[name] for each in held if name in each].count('["127.0.0.1:9"]') >= 4
    # Memory that was freed goes back, with every service that holds tables.
    pools = [each.get("ARROW_DEFAULT_MEMORY_POOL") for each in held]
    assert pools.count("system") >= 4


def test_no_process_leaves_a_core(platform: Settings) -> None:
    """1 byte, not 0: the kernel would still pipe a core to a program."""
    limits = [process.rlimit(psutil.RLIMIT_CORE) for process in marked(platform.paths.home)]
    assert len(limits) >= 8
    assert set(limits) == {(1, 1)}


# What another user of the machine can do: reach the port, and bring a certificate of their own.
STRANGER = """
import json, sys
from distributed import Client, Security
doors, planted = json.loads(sys.argv[1]), sys.argv[2]
for address, cert, key in doors:
    own = Security(
        require_encryption=True, tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key
    ) if cert else None
    try:
        with Client(address, security=own, timeout=8) as client:
            client.run_on_scheduler(lambda: open(planted, "w").close())
            print("open:", address)
    except (OSError, TimeoutError):
        print("shut:", address)
"""


def test_dask_reads_nothing_from_whom_it_does_not_know(platform: Settings, tmp_path: Path) -> None:
    """What it reads it unpickles, which runs it."""
    with dask_client(platform) as client:
        workers = list(client.scheduler_info(n_workers=-1)["workers"])
        assert client.submit(lambda: 41 + 1).result(timeout=120) == 42
    assert len(workers) == 1
    assert all(each.startswith("tls://127.0.0.1:") for each in workers)
    planted = tmp_path / "planted"
    cert, key = make_certificate(tmp_path, "stranger")
    doors = [
        each
        for address in (platform.dask_url, *workers)
        for each in (
            (address.replace("tls://", "tcp://"), "", ""),
            (address, str(cert), str(key)),
        )
    ]
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, json.dumps(doors), str(planted)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    shut = [f"shut: {address}" for address, _, _ in doors]
    assert done.stdout.splitlines() == shut, done.stderr[-800:]
    assert not planted.exists()
    # Nor does TLS without any certificate come further than its greeting.
    for address in (platform.dask_url, *workers):
        port = int(address.rpartition(":")[2])
        line = ssl.create_default_context()
        line.check_hostname, line.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as raw,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            line.wrap_socket(raw).recv(1024)  # an alert: a certificate is asked for


def test_a_node_and_an_operator_are_known_by_themselves_and_tell_no_secret(
    place: Place, platform: Settings
) -> None:
    """A pool that starts over TLS, greets with its token, and is told cookies by a file."""

    def nodes() -> dict[str, object]:
        answer = httpx.get(platform.server_status_url, timeout=60, trust_env=False)
        found: dict[str, object] = answer.json()["nodes"]
        return found

    assert attach_pool(platform).started == ["yeoron-node-0"]
    until(lambda: "yeoron-node-0" in nodes(), "the node did not greet the server", 600)
    told = platform.paths.nodes / "yeoron-node-0.json"
    assert SECRET in told.read_text()
    place.yeoron("live", "policy", "asp")
    as_a_node = Channel(platform.server_location, platform.line())
    with contextlib.closing(as_a_node), pytest.raises(RefusedError, match="an operator's token"):
        as_a_node.action("rollback", {"to": "nothing"})
    for process in marked(platform.paths.home):
        with contextlib.suppress(psutil.NoSuchProcess):
            assert SECRET not in " ".join(process.cmdline())
    assert stop_pool(platform) == ["yeoron-node-0"]
    assert not told.exists()
    logs = [path for path in platform.paths.logs.rglob("*") if path.is_file()]
    assert any("dask-worker" in path.name for path in logs)
    assert [path.name for path in logs if SECRET.encode() in path.read_bytes()] == []


needs_postgres = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server here")


@needs_postgres
def test_everything_is_on_postgres(place: Place) -> None:
    assert not list(place.settings.paths.home.rglob("*.db"))
    shown = place.yeoron("database", "check", "--json").stdout
    assert set(json.loads(shown)) == {"airflow", "mlflow", "frontier"}
    assert shown.count("postgresql") == 3


@needs_postgres
def test_a_lost_database_ends_nothing(place: Place) -> None:
    """More tasks at once than SQLite allows, a node, and a server that is killed under them."""
    attach_pool(place.settings)
    until(lambda: len(nodes(place)) == 1, "the node did not greet the server", 300)
    with airflow(place) as api:
        api.wait_for_dags(["meeting"])
        api.trigger("meeting", "r", {})
        until(lambda: len(list(place.folder.glob("task-*"))) == TASKS, "they do not meet", 300)
        working = node_processes(place)
        assert len(working) >= 2
        place.postgres.stop(signal.SIGQUIT)
        until(lambda: all(away(one) > 5 for one in nodes(place).values()), "nodes do not notice")
        place.postgres.start()
        (place.folder / "over").touch()
        until(lambda: state(api) == "success", lambda: state(api), 300)
    until(lambda: not any(map(away, nodes(place).values())), "nodes do not go on")
    assert node_processes(place) == working
    client = connect(place.settings.tracking_address)
    client.log_metric(client.create_run("0").info.run_id, "loss", 0.5)
    assert stop_pool(place.settings) == ["yeoron-node-0"]


@contextlib.contextmanager
def airflow(place: Place) -> Iterator[AirflowApi]:
    user, password = platform_login(place.settings.paths.airflow)
    api = AirflowApi(place.settings.airflow_url, user, password)
    try:
        yield api
    finally:
        api.close()


def state(api: AirflowApi) -> str:
    time.sleep(0.5)
    try:
        return str(api.runs("meeting")[0]["state"])
    except Exception as error:  # noqa: BLE001 - it has just lost its database
        return repr(error)


def nodes(place: Place) -> dict[str, Any]:
    answer = httpx.get(place.settings.server_status_url, timeout=60, trust_env=False)
    found: dict[str, Any] = answer.json()["nodes"]
    return found


def node_processes(place: Place) -> set[int]:
    """Crawler and gradient process of each node."""
    return {one.pid for one in marked(place.settings.paths.home) if forked(one)}


def away(node: dict[str, Any]) -> float:
    return float((node.get("report") or {}).get("frontier_away_s", 0.0))


def secrets_of(settings: Settings) -> dict[str, bytes]:
    """Every secret that the platform made or was given, by the name of its file."""
    paths = settings.paths
    found = {"cookie": SECRET.encode(), "password": PASSWORD.encode()}
    for path in (*paths.secrets.glob("*-token"), *paths.secrets.glob("*-key.pem")):
        # Of a key without its head and foot, which all keys have.
        found[path.name] = max(
            (line for line in path.read_bytes().splitlines() if b"---" not in line), key=len
        )
    for name in ("secrets.json", "passwords.json"):
        for key, value in json.loads((paths.airflow / name).read_text()).items():
            found[f"{name}:{key}"] = value.encode()
    return found


PLACES = {
    "cookie": ("secrets/nodes/", "frontier/"),
    "password": (),
    "secrets.json": ("airflow/secrets.json", "run/services.json"),
    "passwords.json": ("airflow/passwords.json",),
}
"""Where each may lie besides `secrets/` (docs/concepts/security.md)."""


def test_every_secret_is_in_its_place_alone(platform: Settings) -> None:
    """Of a run whose nodes train: in no argument, no log, and no other file of the home."""
    attach_pool(platform)
    until(
        lambda: "yeoron-node-0" in httpx.get(platform.server_status_url, trust_env=False).text,
        "the node did not greet the server",
        600,
    )
    home, wanted = platform.paths.home, secrets_of(platform)
    assert len(wanted) >= 9
    assert all(len(secret) >= 12 for secret in wanted.values()), list(wanted)
    for process in marked(home):
        with contextlib.suppress(psutil.NoSuchProcess):
            told = "\0".join(process.cmdline()).encode()
            assert [name for name, secret in wanted.items() if secret in told] == []
            assert PASSWORD not in json.dumps(process.environ())
    seen: dict[str, set[str]] = {name: set() for name in wanted}
    for path in home.rglob("*"):
        with contextlib.suppress(OSError):
            held = path.read_bytes() if path.is_file() else b""
            for name, secret in wanted.items():
                if secret in held:
                    seen[name].add(str(path.relative_to(home)))
    stop_pool(platform)
    for name, places in seen.items():
        allowed = PLACES.get(name.partition(":")[0], (f"secrets/{name}",))
        assert places or name == "password", f"{name}: the search does not find it where it is"
        assert [place for place in places if not place.startswith(allowed)] == [], name


def test_tokens_and_certificates_are_replaced_while_it_runs(
    place: Place, platform: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages stay up, the nodes go on, and what the old ones opened is shut."""
    assert platform.server_location.startswith("grpc+tls://127.0.0.1")
    attach_pool(platform)
    paths = platform.paths
    names = (*paths.dask_certificate, *paths.server_certificate, paths.node_token)
    old = {path: path.read_bytes() for path in (*names, paths.operator_token)}
    kept = {p.pid for p in marked(paths.home) if "airflow" in " ".join(p.cmdline())}
    done = place.yeoron("rotate")
    assert "Nodes stopped: yeoron-node-0." in done.stdout
    assert "Nodes started: yeoron-node-0." in done.stdout
    assert all(path.read_bytes() != before for path, before in old.items())
    assert all(path.stat().st_mode & 0o077 == 0 for path in old)
    assert kept & {p.pid for p in marked(paths.home)}

    def status(line) -> dict[str, object]:
        with contextlib.closing(Channel(platform.server_location, line)) as channel:
            answer: dict[str, object] = channel.action("status", {})
            return answer

    def greeted() -> bool:
        return "yeoron-node-0" in status(platform.line())["nodes"]

    until(greeted, "the node did not greet the server again", 300)
    before = paths.home.parent / "before"
    before.mkdir(mode=0o700)
    for path, data in old.items():
        (before / path.name).write_bytes(data)
        (before / path.name).chmod(0o600)
    line = platform.line()
    with_old_token = line.model_copy(update={"token_file": before / "node-token"})
    with pytest.raises(RefusedError, match="token"):
        status(with_old_token)
    # By the port, as from another machine: by its Unix socket the server asks for the token alone.
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "r" * 120)
    cert, key = (before / path.name for path in paths.dask_certificate)
    with pytest.raises(UnavailableError):
        status(line.model_copy(update={"tls_cert": cert, "tls_key": key}))
    stop_pool(platform)
