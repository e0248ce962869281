"""What `yeoron train` shows on a terminal while it runs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from embedding.commands import training as command
from embedding.server.service import ParameterServer, running_server
from embedding.training import TrainProgress
from embedding.training.running import ProgressReader


def show(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[float, TrainProgress]], **terminal: Any
):
    out = io.StringIO()
    console = Console(file=out, width=120, **terminal)
    now = [0.0]
    monkeypatch.setattr(command, "errors", console)
    monkeypatch.setattr(console, "get_time", lambda: now[0])
    bar = command.TrainBar(kept=True)
    monkeypatch.setattr(bar.progress, "get_time", lambda: now[0])
    with bar:
        for at, step in steps:
            now[0] = at
            bar.show(step)
            bar.progress.refresh()
    return out.getvalue()


STEPS = [
    (10.0, TrainProgress(share=0.2, tokens=200, words_per_second=98_765.4, loss=2.5)),
    (20.0, TrainProgress(0.4, 400, words_per_second=100_000.0, loss=1.5)),
    (30.0, TrainProgress(0.6, 600, words_per_second=123_456.7, loss=1.25, replayed=7_200)),
]


def test_share_speed_loss_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = show(monkeypatch, STEPS, force_terminal=True)
    assert "Starting" in shown
    assert "98,765 words/s, loss 2.500" in shown
    assert "123,457 words/s, 7,200 learnt again, loss 1.250" in shown
    assert "60%" in shown
    # 0.2 took ten seconds, so the 0.4 that are left will take twenty.
    assert re.search("0:00:20\\S* left", shown)


def test_nothing_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert show(monkeypatch, STEPS, force_terminal=False) == ""


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    with running_server(dim=2) as running:
        yield running


def test_the_share_is_that_of_the_tokens_that_were_counted(server) -> None:
    reader = ProgressReader(server, total=1000)
    assert reader.read().share == 0.0
    server.state.meters.tokens = 250
    server.state.reports.last = {"a": {"progress": 0.9}}
    assert reader.read().share == 0.25


def test_without_a_count_the_share_is_that_of_what_was_read(server) -> None:
    reader = ProgressReader(server, total=None)
    assert reader.read().share is None
    server.state.reports.last = {"a": {"progress": 0.2}, "b": {"progress": 0.4}, "c": {}}
    assert reader.read().share == pytest.approx(0.3)


def test_the_loss_is_that_of_late(server) -> None:
    reader = ProgressReader(server, total=None)
    meters = server.state.meters
    meters.loss_sum, meters.pairs = 30.0, 10
    assert reader.read().loss == 3.0
    meters.loss_sum, meters.pairs = 40.0, 20
    assert reader.read().loss == 1.0
    assert reader.read().loss is None
