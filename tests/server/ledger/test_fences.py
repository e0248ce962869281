"""An incarnation whose sources were given to others pushes nothing any more, whatever dies
meanwhile.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from named import QUICK
from recovering import config, crash

from embedding.exchange.client import ParameterClient
from embedding.exchange.peer import ask
from embedding.exchange.protocol import PullRequest
from embedding.kernel.errors import ConfigError, FencedError
from embedding.kernel.records import Table
from embedding.server.ledger.sequence import FENCED, Fences
from embedding.server.service import running_server


def greet(location: str, incarnation: str) -> None:
    client = ParameterClient(location, node="n0", config=QUICK, incarnation=incarnation)
    try:
        client.hello()
    finally:
        client.close()


def fence(location: str, node: str, incarnation: str) -> dict:
    return ask(location, QUICK, "fence", {"node": node, "incarnation": incarnation})


@pytest.mark.parametrize("known", [True, False])
def test_a_server_that_is_killed_goes_on_refusing_a_fenced_life(
    tmp_path: Path, known: bool
) -> None:
    """`known`: the server had heard of the node, or it had lost what it had heard of it."""
    with running_server(config(tmp_path), dim=4) as server:
        if known:
            greet(server.location, "old")
        assert fence(server.location, "n0", "old")["sequence"] == 0
        crash(server)
    with running_server(config(tmp_path), dim=4) as server:
        with pytest.raises(FencedError, match="given to others"):
            greet(server.location, "old")
        greet(server.location, "new")


def test_a_fenced_life_that_is_connected_is_refused_at_once(tmp_path: Path) -> None:
    with running_server(config(tmp_path), dim=4) as server:
        client = ParameterClient(server.location, node="n0", config=QUICK, incarnation="old")
        client.hello()
        fence(server.location, "n0", "old")
        with pytest.raises(FencedError):
            client.pull(PullRequest({Table.IN: [], Table.OUT: []}, clock=0))
        client.close()


def test_the_file_forgets_the_oldest_lives_and_torn_lines(tmp_path: Path) -> None:
    path = tmp_path / "fences.jsonl"
    fences = Fences(path)
    for n in range(3 * FENCED):
        assert fences.add("a", f"m{n}")
    assert fences.add("b", "m0")
    assert not fences.add("b", "m0"), "once is enough"
    with path.open("ab") as file:
        file.write(b'nonsense\n[1]\n{"node": "c", "li')
    again = Fences(path)
    assert again.incarnations == fences.incarnations
    assert len(path.read_bytes().splitlines()) == FENCED + 1
    assert again.holds("a", f"m{3 * FENCED - 1}")
    assert not again.holds("a", "m0")
    assert not again.holds("a", "")
    assert again.add("c", "x")
    assert Fences(path).holds("c", "x")


def test_a_folder_of_a_format_that_is_refused_keeps_its_fences(tmp_path: Path) -> None:
    with running_server(config(tmp_path), dim=4) as server:
        path = server.config.state_dir / "fences.jsonl"
    (manifest,) = path.parent.glob("checkpoint-*/manifest.json")
    checkpoint = json.loads(manifest.read_text("utf-8"))
    del checkpoint["digest"]
    checkpoint["facts"]["format"] = 2
    manifest.write_text(json.dumps(checkpoint), "utf-8")
    path.write_text('{"node": "n0", "life": "old"}\n')
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="format 2"), running_server(config(tmp_path), dim=4):
        pass
    assert path.read_bytes() == before


def test_without_a_state_folder_nothing_is_written(tmp_path: Path) -> None:
    fences = Fences(None)
    assert fences.add("a", "m")
    assert fences.holds("a", "m")
    assert not list(tmp_path.iterdir())
