"""A platform whose server runs on another host: a backup of each, and both restored."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from typer.testing import CliRunner

from backup.conftest import WORDS, Pusher, fill_stores, home_settings, tree
from embedding.backup import collecting
from embedding.backup.collecting import back_up
from embedding.backup.manifest import parse_backup
from embedding.backup.restoring import restore
from embedding.cli import app
from embedding.forgetting import ErasureRequest, forget
from embedding.kernel.errors import ConfigError, UnavailableError
from embedding.platform import hosts
from embedding.platform.door import Door
from embedding.platform.serving import server_for
from embedding.server.service import ParameterServer
from embedding.settings import HostsConfig, Settings
from yeoron_lab.ports import lasting_port

BACKUP_MANIFEST = "backup.json"

CONTROL, SERVER = "127.0.0.2", "127.0.0.3"
"""Other addresses of this machine; settings refuse loopback, so they are put in behind them."""


def with_home(settings: Settings, home: Path) -> Settings:
    paths = settings.paths.model_copy(update={"home": home})
    return settings.model_copy(update={"paths": paths})


def joined(control: Settings, here: Settings) -> Settings:
    """The settings of the server's host after `yeoron up --join` there."""
    door = Door(control)
    thread = threading.Thread(target=door.serve_forever)
    thread.start()
    try:
        hosts.join(here, hosts.invite(control, 1, "server"))
    finally:
        door.close()
        thread.join(10)
    return hosts.on_its_host(here)


@contextmanager
def serving(here: Settings) -> Iterator[ParameterServer]:
    """As `yeoron serve` runs it on its host."""
    node, operator = hosts.ensure_tokens(here.paths)
    known = {"token_file": node, "operator_token_file": operator}
    config = here.certified(here.server).model_copy(update=known)
    server = server_for(here, config, here.sync)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def control(tmp_path: Path) -> Settings:
    own = HostsConfig.model_construct(
        address=CONTROL, server=SERVER, port=lasting_port(CONTROL), workers=0
    )
    settings = home_settings(tmp_path / "control").model_copy(update={"hosts": own})
    hosts.ensure_authority(settings)
    return settings


@pytest.fixture
def alone(control: Settings, tmp_path: Path) -> Settings:
    """The settings of the server's host before it joins."""
    none = HostsConfig.model_construct(address="", server="", port=8790, workers=0)
    return with_home(control, tmp_path / "server").model_copy(update={"hosts": none})


Both = tuple[Settings, Settings, ParameterServer, Pusher]


@pytest.fixture
def both(control: Settings, alone: Settings) -> Iterator[Both]:
    here = joined(control, alone)
    with serving(here) as server:
        node = Pusher(control, server, line=control.line())
        node.learn(WORDS)
        fill_stores(control)
        yield control, here, server, node
        node.client.close()


@pytest.mark.timeout(300)
def test_both_hosts_come_back_from_a_backup_of_each(
    both: Both, alone: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, here, server, node = both
    rows, tokens, sequence = node.rows(WORDS), server.status()["tokens"], node.sequence
    node.client.close()
    first = back_up(control, str(tmp_path / "a"))
    assert first.server_host == SERVER
    assert first.store("frontier")
    assert not first.store("checkpoints")
    for name, value in {
        "PATHS__HOME": str(here.paths.home),
        "MODEL__DIM": str(here.model.dim),
        "SERVER__PORT": str(here.server.port),
    }.items():
        monkeypatch.setenv(f"YEORON_{name}", value)
    done = CliRunner().invoke(app, ["backup", str(tmp_path / "b"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["files"] > 3
    second = parse_backup((tmp_path / "b" / BACKUP_MANIFEST).read_bytes(), "b")
    assert second.store("checkpoints")
    server.stop()

    again = with_home(control, tmp_path / "control-again")
    there = with_home(alone, tmp_path / "server-again")
    restore(again, str(tmp_path / "a"))
    restore(there, str(tmp_path / "b"))
    hosts.ensure_authority(again)
    with serving(joined(again, there)) as fresh:
        assert fresh.status()["tokens"] == tokens
        back = Pusher(again, fresh, line=again.line())
        assert back.sequence == sequence
        for mine, its in zip(rows, back.rows(WORDS), strict=True):
            np.testing.assert_array_equal(mine, its)
        back.client.close()


@pytest.mark.timeout(300)
def test_while_nodes_train_it_says_what_to_do(both: Both, tmp_path: Path) -> None:
    control, _, _, node = both
    place = tmp_path / "a"
    wanted = r"n0 train on the server of the host 127\.0\.0\.3 .* run `yeoron down` here, then"
    with pytest.raises(ConfigError, match=wanted):
        back_up(control, str(place))
    assert not place.exists() or not list(place.iterdir())
    node.client.close()
    assert back_up(control, str(place)).files


@pytest.mark.timeout(300)
def test_a_push_meanwhile_is_noticed(both: Both, tmp_path: Path) -> None:
    control, _, server, node = both
    node.client.close()
    real = collecting.dump

    def slow(address: str, target: Path) -> bool:
        if "frontier" in address:
            late = Pusher(control, server, "n1", control.line())
            late.learn(["늦은말"])
            late.client.close()
        return real(address, target)

    place = tmp_path / "a"
    with patch.object(collecting, "dump", slow), pytest.raises(UnavailableError, match="meanwhile"):
        back_up(control, str(place))
    assert not place.exists() or not list(place.iterdir())


@pytest.mark.timeout(300)
def test_parts_that_do_not_belong_together_are_refused(
    both: Both, alone: Settings, tmp_path: Path
) -> None:
    control, here, server, node = both
    node.client.close()
    server.stop()
    # A server that is away pushes nothing.
    back_up(control, str(tmp_path / "a"))
    back_up(here, str(tmp_path / "b"))
    fresh = with_home(alone, tmp_path / "fresh")
    with pytest.raises(ConfigError, match=r"in the backup of another host \(127\.0\.0\.3\)"):
        restore(fresh, str(tmp_path / "a"))
    with pytest.raises(ConfigError, match=r"settings without hosts\.server are accepted"):
        restore(with_home(control, tmp_path / "fresh"), str(tmp_path / "b"))
    assert not (tmp_path / "fresh").exists()


@pytest.mark.timeout(300)
def test_nothing_is_forgotten_while_the_server_of_the_other_host_answers(both: Both) -> None:
    control, _, server, _ = both
    wanted = ErasureRequest(word=WORDS[0])
    before = tree(control.paths.evidence)
    with pytest.raises(ConfigError, match=r"host 127\.0\.0\.3 is running; stop it first"):
        forget(control, wanted)
    assert tree(control.paths.evidence) == before
    assert forget(control, wanted, dry=True)
    server.stop()
    assert any("127.0.0.3; call the same there" in one for one in forget(control, wanted))
    assert tree(control.paths.evidence) != before
