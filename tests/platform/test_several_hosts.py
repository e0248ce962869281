"""A control host and two hosts that joined, each a network namespace with a home of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netns import NETWORK, Bridge, Host, join, refused_namespaces, source
from waiting import until

CONTROL = f"{NETWORK}.1"
WORDS = '[text]\ntokenizer = "whitespace"\n'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif((reason := refused_namespaces()) is not None, reason=str(reason)),
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Host, Host, Host]]:
    bridge = Bridge(f"yb{os.getpid()}")
    names = ("control", "first", "second")
    hosts = []
    for i, name in enumerate(names, start=1):
        folder = tmp_path / name
        folder.mkdir()
        host = Host(f"y{os.getpid()}{i}", f"{NETWORK}.{i}", folder, bridge)
        sections = [WORDS, "[hosts]\nworkers = 1\n"]
        if name == "control":
            sections = [
                WORDS,
                f'[hosts]\naddress = "{CONTROL}"\n[cluster]\nnodes = 1\n',
                f'[crawl]\nfrontier = "sqlite:///{tmp_path}/frontier.db"\n',
                # What is learnt is remembered soon.
                "[server]\ncheckpoint_every_s = 2\n",
            ]
        paths = f'[paths]\nhome = "{host.home}"\nsources = "{tmp_path}/sources.toml"\n'
        host.settings.write_text(paths + "".join(sections), encoding="utf-8")
        hosts.append(host)
    source(tmp_path, "before", "2021-01-03")
    try:
        bridge.start()
        for host in hosts:
            host.start()
        yield hosts[0], hosts[1], hosts[2]
    finally:
        for host in reversed(hosts):
            host.end()
        bridge.end()


def test_a_host_joins_is_cut_off_dies_and_joins_again_after_a_rotation(
    world: tuple[Host, Host, Host], tmp_path: Path
) -> None:
    control, *others = world
    control.ask("start")
    for host in others:
        file = control.ask("joining")
        join(host, file)
        again = join(host, file, check=False)
        assert again.returncode == 1
        assert "already running" in again.stderr

    def came() -> bool:
        time.sleep(0.3)
        return len(control.ask("workers")) == 2

    until(came, "the workers did not come", 300)

    control.ask("attach")
    until(lambda: learnt(control, "before"), lambda: control.ask("status"), 600)
    first = documents(control, "before")
    at = host_of_the_node(control, others)

    at.cable("down")
    source(tmp_path, "meanwhile", "2021-01-02")
    control.ask("publish")
    time.sleep(10)
    assert documents(control, "meanwhile") == 0, "nobody can have pushed"
    at.cable("up")
    until(lambda: learnt(control, "meanwhile"), lambda: control.ask("status"), 600)
    # Dask gave the node to the other host where the cut was longer than it waits.
    at = host_of_the_node(control, others)

    at.die()
    source(tmp_path, "afterwards", "2021-01-04")
    control.ask("publish")
    until(lambda: learnt(control, "afterwards"), lambda: control.ask("status"), 600)
    left = host_of_the_node(control, others)
    assert left is not at

    said = control.yeoron("rotate").stdout.replace("\n", " ")
    for sentence in ("Nodes stopped: yeoron-node-0.", "Hosts that have joined are shut out"):
        assert sentence in said
    assert "Nodes start with the next run of opinion_stream" in said
    assert control.ask("workers") == {}, "what the old certificates opened is shut"
    running = join(left, control.ask("joining"), check=False)
    assert "already running" in running.stderr
    left.yeoron("down")
    join(left, control.ask("joining"))
    until(lambda: len(control.ask("workers")) == 1, "the worker did not come again", 300)
    source(tmp_path, "rotated", "2021-01-04")
    control.ask("attach")
    until(lambda: learnt(control, "rotated"), lambda: control.ask("status"), 600)
    assert documents(control, "before") == first, "nothing is learnt twice"


def documents(control: Host, name: str) -> int:
    return int(control.ask("status")["sources"].get(name, {}).get("documents", 0))


def learnt(control: Host, name: str) -> bool:
    before = documents(control, name)
    time.sleep(3)
    return before > 0 and documents(control, name) == before


def host_of_the_node(control: Host, others: list[Host]) -> Host:
    workers = control.ask("workers")
    running = [worker for worker, keys in workers.items() if "yeoron-node-0" in keys]
    (found,) = [host for host in others if any(f"//{host.address}:" in one for one in running)]
    return found
