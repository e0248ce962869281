"""A host joins with a file that serves once; nothing rests on clocks that are equal."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from embedding.exchange.config import ExchangeConfig
from embedding.kernel.certificates import make_certificate
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.kernel.private import ensure_secret
from embedding.nodetask import placed
from embedding.platform import hosts
from embedding.platform.delivering import EvidenceDelivery
from embedding.platform.door import Door
from embedding.platform.hosts import (
    JoinedHost,
    JoiningFile,
    address_now,
    ensure_authority,
    invite,
    joined_host,
    on_its_host,
)
from embedding.platform.relay import ServerPages
from embedding.platform.rotation import rotate
from embedding.platform.services import dask_workers
from embedding.server.service import running_server
from embedding.settings import HostsConfig, PathsConfig, Settings
from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from embedding.worker.spec import NodeSpec
from yeoron_lab.ports import lasting_port

ADDRESS = "127.0.0.2"
"""Another address of this machine; settings refuse loopback, so it is put in behind them."""


def at(home: Path, address: str = "", port: int = 8790) -> Settings:
    own = HostsConfig.model_construct(address=address, port=port, workers=1)
    return Settings(paths=PathsConfig(home=home)).model_copy(update={"hosts": own})


@contextmanager
def serving(settings: Settings) -> Iterator[None]:
    """The control host's door is open."""
    door = Door(settings)
    thread = threading.Thread(target=door.serve_forever)
    thread.start()
    try:
        yield
    finally:
        door.close()
        thread.join(10)


@pytest.fixture
def closed(tmp_path: Path) -> Settings:
    settings = at(tmp_path / "control", ADDRESS, lasting_port(ADDRESS))
    ensure_authority(settings)
    ensure_secret(settings.paths.node_token, "f" * 64 + "\n")
    return settings


@pytest.fixture
def control(closed: Settings) -> Iterator[Settings]:
    with serving(closed):
        yield closed


def written(folder: Path, file: JoiningFile, **changes: object) -> Path:
    path = folder / "join.json"
    path.unlink(missing_ok=True)
    ensure_secret(path, file.model_copy(update=changes).model_dump_json())
    return path


def test_a_file_serves_once(control: Settings, tmp_path: Path) -> None:
    file = hosts.read_joining_file(written(tmp_path, invite(control, 1)))
    here = at(tmp_path / "host")
    host = hosts.join(here, file)
    assert host == joined_host(here.paths)
    assert host.scheduler == control.dask_url
    for name in ("authority.pem", "node-token"):
        there = control.paths.secrets / name
        assert (here.paths.secrets / name).read_bytes() == there.read_bytes()
    assert {path.stat().st_mode & 0o777 for path in here.paths.secrets.iterdir()} == {0o600}
    other = at(tmp_path / "other")
    with pytest.raises(ConfigError, match="unknown or was used before"):
        hosts.join(other, file)
    assert not list(other.paths.secrets.iterdir())
    with pytest.raises(ConfigError, match="has joined already"):
        hosts.join(here, file)


def test_a_host_joins_again_after_a_rotation(closed: Settings, tmp_path: Path) -> None:
    control, here = closed, at(tmp_path / "host")
    sentences: list[str] = []
    with serving(control):
        hosts.join(here, invite(control, 1))
    (here.paths.home / "evidence").mkdir()
    before = {path.name: path.read_bytes() for path in here.paths.secrets.iterdir()}
    unused = invite(control, 1)
    assert rotate(control, sentences.append) == ()
    assert sentences[-1].startswith("Hosts that have joined are shut out until they join again")
    with serving(control):
        with pytest.raises(ConfigError, match="another authority"):
            hosts.join(at(tmp_path / "other"), unused)
        file = invite(control, 1)
        foreign = file.model_copy(update={"address": "198.51.100.9"})
        with pytest.raises(ConfigError, match=f"has joined {ADDRESS} as a node"):
            hosts.join(here, foreign)
        host = hosts.join(here, file)
        with pytest.raises(ConfigError, match="has joined already"):
            hosts.join(here, invite(control, 1))
    assert host == joined_host(here.paths)
    assert (here.paths.home / "evidence").is_dir()
    for name in ("authority.pem", "dask-cert.pem", "dask-key.pem", "node-token"):
        assert (here.paths.secrets / name).read_bytes() != before[name]
    authority = control.paths.authority.read_bytes()
    assert here.paths.authority.read_bytes() == authority
    with pytest.raises(PlatformError, match=f"this host has joined the one at {ADDRESS}"):
        rotate(here, sentences.append)


def test_two_hosts_with_one_file_at_once(control: Settings, tmp_path: Path) -> None:
    file = invite(control, 1)
    told: list[str] = []

    def tries(home: Path) -> None:
        try:
            hosts.join(at(home), file)
            told.append("in")
        except ConfigError:
            told.append("out")

    threads = [threading.Thread(target=tries, args=(tmp_path / f"h{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["in", "out", "out", "out"]


def test_the_control_hosts_clock_says_what_has_expired(
    control: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = invite(control, 1)
    (held,) = (control.paths.secrets / "invitations").iterdir()
    assert file.token not in held.name + held.read_text()
    assert "expires" not in file.model_dump_json()
    late = json.loads(held.read_text()) | {"expires": time.time() - 1}
    held.write_text(json.dumps(late))
    with pytest.raises(ConfigError, match="has expired"):
        hosts.join(at(tmp_path / "host"), file)


def test_a_foreign_authority_hears_no_token(
    control: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = invite(control, 1)
    with pytest.raises(ConfigError, match="another authority"):
        hosts.join(at(tmp_path / "host"), file.model_copy(update={"authority": "0" * 64}))
    hosts.join(at(tmp_path / "host"), file)  # the token was not used up


def test_a_file_that_is_none(tmp_path: Path, control: Settings) -> None:
    path = written(tmp_path, invite(control, 1))
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="every user of this machine"):
        hosts.read_joining_file(path)
    path.chmod(0o600)
    path.write_text('{"role": "king"}')
    with pytest.raises(ConfigError, match=r"--join .*join\.json"):
        hosts.read_joining_file(path)
    with pytest.raises(ConfigError, match="No such file"):
        hosts.read_joining_file(tmp_path / "none.json")


def test_a_control_host_that_is_away_leaves_the_file_good(tmp_path: Path) -> None:
    file = JoiningFile(
        address=ADDRESS, port=lasting_port(ADDRESS), authority="0" * 64, token="0" * 64
    )
    with pytest.raises(PlatformError, match="good for another try"):
        hosts.join(at(tmp_path / "host"), file)


def test_a_platform_of_its_own_does_not_join(control: Settings, tmp_path: Path) -> None:
    own = at(tmp_path / "own")
    ensure_authority(own)
    with pytest.raises(ConfigError, match="a platform of its own"):
        hosts.join(own, invite(control, 1))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"token": "x", "request": "y"}', b"\xff", b'{"token": "../x"}']
)
def test_what_is_no_request_is_refused(control: Settings, body: bytes) -> None:
    door = Door(control.model_copy(update={"hosts": at(control.paths.home, ADDRESS, 0).hosts}))
    try:
        assert door.answer("/join", body)[0] in {400, 403}
    finally:
        door._server.server_close()


def test_a_bad_request_leaves_the_invitation(control: Settings, tmp_path: Path) -> None:
    file = invite(control, 1)
    door = Door(control.model_copy(update={"hosts": at(control.paths.home, ADDRESS, 0).hosts}))
    asked = json.dumps({"token": file.token, "request": "no request"}).encode()
    assert door.answer("/join", asked)[0] == 400
    door._server.server_close()
    hosts.join(at(tmp_path / "host"), file)


def test_nobody_joins_a_platform_that_stays_on_its_machine(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"hosts\.address"):
        invite(at(tmp_path), 1)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "127.0.0.1", "localhost", "a b"])
def test_an_address_that_others_cannot_reach_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        HostsConfig(address=address)


def test_a_frontier_in_a_file_is_for_one_host() -> None:
    with pytest.raises(ConfigError, match="PostgreSQL"):
        hosts.require_shared(at(Path("x"), "192.0.2.7"), "sqlite:///x.db")
    hosts.require_shared(at(Path("x"), "192.0.2.7"), "postgresql://db/x")
    hosts.require_shared(at(Path("x")), "sqlite:///x.db")


def test_a_node_takes_the_files_of_its_own_home() -> None:
    line = ExchangeConfig(token_file=Path("/a/secrets/node-token"), tls_ca=Path("/etc/ca.pem"))
    spec = NodeSpec(
        name="n", server="grpc+tls://192.0.2.7:1", exchange=line, evidence=Path("/a/evidence")
    )
    there = placed(spec, Path("/a"), Path("/b"))
    assert there.exchange.token_file == Path("/b/secrets/node-token")
    assert there.exchange.tls_ca == Path("/etc/ca.pem")
    assert there.evidence == Path("/b/evidence")
    assert placed(spec, Path("/a"), Path("/a")) == spec


def test_the_server_of_several_hosts_asks_for_certificates(control: Settings) -> None:
    server = control.certified(control.server)
    assert server.host == ADDRESS
    assert server.tls_client_ca == control.paths.authority.resolve()
    assert control.server_location == f"grpc+tls://{ADDRESS}:{control.server.port}"
    assert control.line().tls_ca == control.paths.authority.resolve()


def test_the_server_of_one_host_asks_for_certificates_too(tmp_path: Path) -> None:
    alone = at(tmp_path)
    assert alone.certified(alone.server) == alone.server
    assert alone.server_location.startswith("grpc://127.0.0.1")
    ensure_authority(alone)
    server = alone.certified(alone.server)
    assert server.host == "127.0.0.1"
    assert server.tls_client_ca == alone.paths.authority.resolve()
    assert alone.server_location == f"grpc+tls://127.0.0.1:{server.port}"
    assert alone.line().tls_ca == server.tls_client_ca
    given = alone.exchange.model_copy(update={"operator_token_file": tmp_path / "mine"})
    mine = alone.model_copy(update={"exchange": given}).line(operator=True)
    assert (mine.token_file, mine.tls_ca) == (tmp_path / "mine", server.tls_client_ca)
    # Another server, of this machine or not, is not the platform's.
    other = alone.server.model_copy(update={"port": server.port + 1})
    assert alone.certified(other) == other
    assert alone.line(f"grpc://127.0.0.1:{other.port}").tls_ca is None


def test_the_servers_certificate_is_of_this_authority(control: Settings, tmp_path: Path) -> None:
    before = control.paths.server_certificate[0].read_bytes()
    ensure_authority(control)
    assert control.paths.server_certificate[0].read_bytes() == before
    make_certificate(control.paths.secrets, "dask")
    ensure_authority(control)
    assert control.paths.server_certificate[0].read_bytes() != before


def test_workers_of_a_host_have_names_of_their_own(tmp_path: Path) -> None:
    services = dask_workers(at(tmp_path), "tls://192.0.2.7:8786", "192.0.2.8")
    (command,) = (service.command for service in services)
    assert "worker-192.0.2.8-0" in command
    assert "tls://192.0.2.7:8786" in command
    assert command[command.index("--host") + 1] == "192.0.2.8"


SERVER = "127.0.0.3"


def with_server(settings: Settings) -> Settings:
    """The control host of a platform whose server runs on another."""
    own = settings.hosts.model_copy(update={"server": SERVER})
    return settings.model_copy(update={"hosts": own})


def test_a_host_of_nodes_comes_back_at_another_address() -> None:
    then = JoinedHost(
        role="node",
        address="192.0.2.99",
        scheduler="tls://127.0.0.1:8786",
        control="localhost",
        port=8790,
    )
    assert address_now(then) in {"127.0.0.1", "::1"}
    for alike in (
        then.model_copy(update={"role": "server"}),  # control.hosts.server says where it is
        then.model_copy(update={"control": ""}),  # joined before that was remembered
        then.model_copy(update={"control": "no-such-host.invalid"}),
    ):
        assert address_now(alike) == "192.0.2.99"


def test_a_server_joins_with_names_and_tokens_of_its_own(tmp_path: Path) -> None:
    settings = with_server(at(tmp_path / "control", ADDRESS, lasting_port(ADDRESS)))
    ensure_authority(settings)
    door = Door(settings)
    thread = threading.Thread(target=door.serve_forever)
    thread.start()
    try:
        file = invite(settings, 1, "server")
        assert file.role == "server"
        here = at(tmp_path / "server")
        host = hosts.join(here, file)
        again = at(tmp_path / "again")
        with pytest.raises(ConfigError, match="unknown or was used before"):
            hosts.join(again, file)
    finally:
        door.close()
        thread.join(10)
    assert (host.role, host.address) == ("server", SERVER)
    for name in ("authority.pem", "node-token", "operator-token"):
        there = settings.paths.secrets / name
        assert (here.paths.secrets / name).read_bytes() == there.read_bytes()
    assert not here.paths.dask_certificate[0].exists()
    server = on_its_host(here).certified(here.server)
    assert server.host == SERVER
    assert server.tls_client_ca == here.paths.authority.resolve()
    assert settings.server_location == f"grpc+tls://{SERVER}:{settings.server.port}"
    line = settings.line(operator=True)
    assert line.tls_ca == settings.paths.authority.resolve()
    assert line.token_file == settings.paths.operator_token.resolve()
    # What control calls from there is answered: names, certificates and tokens agree.
    config = server.model_copy(update={"port": 0, "min_count": 1})
    node, operator = hosts.ensure_tokens(here.paths)
    config = config.model_copy(update={"token_file": node, "operator_token_file": operator})
    with running_server(config, dim=4) as running:
        pages = ServerPages(running.location, line)
        assert pages.status()["dim"] == 4
        assert pages.ailing() == []
        assert b"yeoron" in pages.metrics()
    assert "cannot be reached" in pages.ailing()[0]


def test_an_invitation_for_a_server_needs_its_address(control: Settings) -> None:
    with pytest.raises(ConfigError, match=r"hosts\.server"):
        invite(control, 1, "server")


def test_snapshots_of_a_server_elsewhere_are_where_both_reach_them(control: Settings) -> None:
    settings = with_server(control)
    with pytest.raises(ConfigError, match=r"server\.snapshots"):
        hosts.require_shared(settings, "postgresql://db/x")
    server = settings.server.model_copy(update={"snapshots": "s3://bucket/snapshots"})
    hosts.require_shared(settings.model_copy(update={"server": server}), "postgresql://db/x")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"server": "192.0.2.8"}, "which is empty"),
        ({"address": "192.0.2.7", "server": "192.0.2.7"}, "it is this host"),
        ({"address": "192.0.2.7", "server": "127.0.0.1"}, "cannot reach that"),
    ],
)
def test_a_servers_address_that_cannot_be_is_refused(given: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        HostsConfig.model_validate(given)


def test_a_home_that_joined_before_evidence_was_delivered_opens(tmp_path: Path) -> None:
    paths = at(tmp_path).paths
    before = {"role": "node", "address": ADDRESS, "scheduler": "tls://192.0.2.7:8786"}
    ensure_secret(paths.joined_host, json.dumps(before))
    host = joined_host(paths)
    assert host is not None
    assert host.control == ""


def evidence(url: str) -> pa.Table:
    row = {"word": "말", "source": "a", "day": 18_262, "hash": 7, "url": url, "published": AT}
    return pa.Table.from_pylist([row], schema=EVIDENCE_SCHEMA)


def addresses(paths: PathsConfig) -> list[str]:
    start = datetime.fromtimestamp(AT - 10, UTC)
    end = datetime.fromtimestamp(AT + 10, UTC)
    return sorted(one.url for one in EvidenceStore(paths.evidence).find("말", start, end))


AT = 18_262 * 86_400.0 + 100


def test_evidence_of_a_host_comes_to_the_control_host(control: Settings, tmp_path: Path) -> None:
    here = at(tmp_path / "host")
    host = hosts.join(here, invite(control, 1))
    EvidenceStore(here.paths.evidence).add(evidence("https://a.example/1"), "n0")
    (path,) = here.paths.evidence.glob("*/*.parquet")
    data = path.read_bytes()
    delivery = EvidenceDelivery(here.paths, host)
    assert delivery.deliver() == 1
    assert addresses(control.paths) == ["https://a.example/1"]
    assert not list(here.paths.evidence.glob("*/*.parquet")), "it lies in one home alone"
    # The answer was lost, so that it comes once more.
    path.write_bytes(data)
    assert delivery.deliver() == 1
    assert addresses(control.paths) == ["https://a.example/1"]
    # What is no evidence stays where it is, and is not brought again and again.
    path.write_bytes(b"no parquet")
    assert delivery.deliver() == 0
    assert path.exists()
    assert delivery.deliver() == 0
    away = EvidenceDelivery(here.paths, host.model_copy(update={"port": lasting_port(ADDRESS)}))
    with pytest.raises(PlatformError, match="does not answer"):
        away.deliver()


def test_who_has_not_joined_delivers_nothing(control: Settings, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=str(control.paths.authority))
    context.check_hostname = False
    port = control.hosts.port
    EvidenceStore(tmp_path / "own").add(evidence("https://evil.example/1"), "n0")
    (path,) = (tmp_path / "own").glob("*/*.parquet")
    connection = http.client.HTTPSConnection(ADDRESS, port, timeout=20, context=context)
    connection.request("POST", f"/evidence/2020-01/{path.name}", path.read_bytes())
    assert connection.getresponse().status == 403
    connection.close()
    assert addresses(control.paths) == []


@pytest.mark.parametrize(
    "place", ["../secrets/x-0123456789ab", "2020-01/../../x-0123456789ab", "2020-01/x"]
)
def test_evidence_goes_nowhere_else(control: Settings, tmp_path: Path, place: str) -> None:
    here = at(tmp_path / "host")
    host = hosts.join(here, invite(control, 1))
    before = sorted(control.paths.home.rglob("*"))
    delivery = EvidenceDelivery(here.paths, host)
    path = Path("x") / place
    status = delivery._post(path.with_suffix(".parquet"), b"{}")
    assert status in {400, 404}
    assert sorted(control.paths.home.rglob("*")) == before
