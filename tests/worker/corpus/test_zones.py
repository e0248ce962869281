"""A dated corpus in the reader's time zone: a date without a time is a day of that zone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from embedding.kernel.records import WindowUnit
from embedding.worker.corpus.datedlines import dated_columns
from embedding.worker.spec import CorpusShare

ZONES = ["UTC", "Asia/Seoul", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
days = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(
    lambda when: when.replace(hour=0, minute=0, second=0, microsecond=0)
)


def windows(path: Path, dates: list[str], zone: str, *, broken: bool) -> list[str]:
    """Label of each line's day; a broken line has the file read line by line."""
    lines = [json.dumps({"date": date, "text": "말"}) for date in dates]
    path.write_text("\n".join([*lines, *(["{"] if broken else [])]), "utf-8")
    share = CorpusShare(path=str(path), window=WindowUnit.DAY, timezone=zone)
    return [
        share.calendar.window(start).label
        for lines in dated_columns(share)
        for start, part in lines.by_window(share.calendar)
        for _ in part.when
    ]


@pytest.mark.parametrize("broken", [False, True])
@given(zone=st.sampled_from(ZONES), day=days)
def test_a_line_is_of_its_day_however_its_date_is_written(
    tmp_path_factory: pytest.TempPathFactory, broken: bool, zone: str, day: datetime
) -> None:
    local = ZoneInfo(zone)
    midnight = day.replace(tzinfo=local)
    assume(midnight.astimezone(UTC).astimezone(local) == midnight)  # not left out by the zone
    before = (midnight.astimezone(UTC) - timedelta(seconds=1)).astimezone(local)
    path = tmp_path_factory.mktemp("corpus") / "c.jsonl"
    own, other = f"{day:%Y-%m-%d}", f"{before:%Y-%m-%d}"
    bare = [f"{before:%Y-%m-%dT%H:%M:%S}", own, f"{own}T00:00:01"]
    assert windows(path, bare, zone, broken=broken) == [other, own, own]
    for shown in (local, UTC):
        at = [before, midnight, midnight + timedelta(seconds=1)]
        dates = [moment.astimezone(shown).isoformat() for moment in at]
        assert windows(path, dates, zone, broken=broken) == [other, own, own]
