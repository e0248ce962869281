"""`yeoron live policy`: how nodes are kept in step, shown and changed while they train."""

from __future__ import annotations

import json

import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server


@pytest.fixture(scope="module")
def server():
    with running_server(ServerConfig(min_count=1), SyncConfig(staleness=3)) as running:
        yield running


def test_it_is_changed_for_nodes_that_train_and_what_is_not_named_stays(yeoron, server) -> None:
    ask = ("live", "policy", "--server", server.location)
    with ParameterClient(server.location, node="n", config=ExchangeConfig()) as node:
        assert node.hello().policy == "ssp"
        done = yeoron(*ask, "averaging", "--sync-setting", "tau=8", "--json")
        assert (done.code, done.err) == (0, "")
        told = json.loads(done.out)
        assert (told["policy"], told["tau"], told["staleness"]) == ("averaging", 8, 3)
        assert node.hello().policy == "averaging"
        shown = yeoron(*ask)
        assert shown.code == 0
        assert {"policy averaging", "tau 8", "running averaging"} <= {
            " ".join(line.split()) for line in shown.out.splitlines()
        }
        yeoron(*ask, "ssp", "--sync-setting", "tau=2")
        shown = yeoron(*ask).out
        assert "staleness" in shown
        assert not any(name in shown for name in ("lbfgs_", "auto_"))
        assert "settings of other policies: --json" in shown
        assert "lbfgs_every" in json.loads(yeoron(*ask, "--json").out)
    (switch,) = node_switches(server)[-1:]
    assert (switch["from"], switch["to"]) == ("averaging", "ssp")
    assert server.state.machine.config.staleness == 3


def node_switches(server) -> list[dict[str, str]]:
    return server.status()["sync"]["switches"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("nonsense", ["'nonsense'", "asp", "hogwild", "ssp is accepted"]),
        ("hogwild", ["hogwild", "from the start"]),
        (
            "asp --sync-setting n_push=0",
            ["n_push", "a number of at least 1 and of at most 1,024 is accepted"],
        ),
        ("asp --sync-setting n_push", ["NAME=VALUE"]),
        ("asp --sync-setting policy=bsp", ["NAME=VALUE"]),
        ("asp --sync-setting colour=1", ["unknown setting 'colour'"]),
    ],
)
def test_what_cannot_work_is_one_sentence_and_changes_nothing(
    yeoron, server, options: str, parts: list[str]
) -> None:
    before = server.state.machine.config
    done = yeoron("live", "policy", "--server", server.location, *options.split())
    assert done.code == 2
    assert done.err.count("\n") == 1
    for part in parts:
        assert part in done.err
    assert server.state.machine.config == before
