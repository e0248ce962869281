"""A node and its server book what was crawled in windows of the server's time zone."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from crawling_node import Node

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Window, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.snapshots.evidence import EvidenceStore
from embedding.snapshots.store import SnapshotStore
from embedding.worker.words.evidence import EvidenceKeeper

ZONES = ["UTC", "Asia/Seoul", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
MIDNIGHTS = [datetime(2020, 3, 1), datetime(2020, 3, 9), datetime(2020, 11, 2)]
"""The days before the last two are those on which New York changes its clocks."""

ENDS = ((2, 29), (3, 31))
"""Days on which March begins and ends in Seoul, at 15:00 UTC."""


def config(folder: Path, zone: str, unit: WindowUnit = WindowUnit.DAY) -> ServerConfig:
    return ServerConfig(
        min_count=1,
        min_authors=1,
        min_sources=1,
        window=unit,
        timezone=zone,
        snapshots=str(folder / "store"),
        state_dir=folder / "state",
        device="cpu",
    )


@pytest.mark.parametrize("zone", ZONES)
def test_what_is_crawled_around_midnight_is_of_its_local_day(tmp_path: Path, zone: str) -> None:
    chosen = config(tmp_path, zone)
    zoned = [each.replace(tzinfo=chosen.calendar.zone).timestamp() for each in MIDNIGHTS]
    times = [at + aside for at in zoned for aside in (-1, 0, 1)]
    moments = [datetime.fromtimestamp(at, chosen.calendar.zone) for at in times]
    expected = Counter(f"{moment:%Y-%m-%d}" for moment in moments)
    keeper = EvidenceKeeper(tmp_path / "evidence", "n0", chosen.calendar)
    with running_server(chosen, SyncConfig(policy="asp"), dim=4) as server:
        node = Node(server, "n0")
        for moment in moments:
            block = node.read("news", (None, "마스크 공장"), when=moment)
            keeper.read([block], [np.arange(len(block.words))])
        server.state.flush()
        found = server.status()["windows"]
        assert {label: one["documents"] for label, one in found.items()} == expected
        march = found["2020-03-01"]
        midnight = moments[1]
        assert march["start"] == midnight.isoformat()
        ref = node.client.cut(Window.holding(midnight, WindowUnit.DAY))
        node.client.close()
    keeper.write()
    manifest = SnapshotStore(chosen.snapshots).manifest(ref.id)
    assert (manifest.window.label, manifest.timezone) == ("2020-03-01", zone)
    assert ref.window_start.isoformat() == manifest.window.start.isoformat() == march["start"]
    days = EvidenceStore(tmp_path / "evidence")
    assert {one.published for one in days.find("마스크", ref.window_start, ref.window_end)} == {
        midnight.date()
    }
    counted = days.days(["마스크"], moments[0], moments[-1] + timedelta(seconds=1))
    assert [one.documents for one in counted] == [expected[label] for label in sorted(expected)]


@pytest.mark.parametrize("kept", ["state", "store"])
def test_another_time_zone_is_refused_where_windows_are(tmp_path: Path, kept: str) -> None:
    """A store and a checkpoint of before there was the setting are of UTC."""
    chosen = config(tmp_path, "UTC", WindowUnit.MONTH)
    with running_server(chosen, SyncConfig(policy="asp"), dim=4) as server:
        node = Node(server, "n0")
        node.read("news", (None, "마스크 공장"))
        node.client.cut(Window.holding(datetime(2020, 2, 3, tzinfo=UTC), WindowUnit.MONTH))
        node.client.close()
    other = {"state_dir": None} if kept == "store" else {"snapshots": None}
    changed = chosen.model_copy(update={"timezone": "Asia/Seoul", **other})
    with (
        pytest.raises(ConfigError, match=r"set server\.timezone to UTC, or begin in a new folder"),
        running_server(changed, SyncConfig(policy="asp"), dim=4),
    ):
        pass


def test_a_window_has_its_name_whatever_offset_its_bounds_are_given_in(tmp_path: Path) -> None:
    chosen = config(tmp_path, "Asia/Seoul", WindowUnit.MONTH)
    with running_server(chosen, SyncConfig(policy="asp"), dim=4) as server:
        node = Node(server, "n0")
        first, last = (datetime(2020, month, day, 15, tzinfo=UTC) for month, day in ENDS)
        node.read("news", (None, "마스크 공장"), when=first + timedelta(minutes=30))
        ref = node.client.cut(Window(first, last))
        node.client.close()
    assert ref.id.startswith("2020-03-")
