"""Where nothing happened hardly anything is called: documents dealt out to windows by chance."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.nullmonths import called, read, summary

MONTHS, DOCUMENTS, WORDS = 14, 250, 3_000


def corpus(path: Path) -> Path:
    """Documents of ten words by Zipf's law, whose use never changes."""
    rng = np.random.default_rng(5)
    weights = 1.0 / (np.arange(WORDS) + 5.0)
    weights /= weights.sum()
    with path.open("w", encoding="utf-8") as file:
        for at in range(MONTHS * DOCUMENTS):
            when = datetime(2001, 1, 1, tzinfo=UTC) + timedelta(days=at * 30.4 / DOCUMENTS)
            text = " ".join(f"말{word}" for word in rng.choice(WORDS, 10, p=weights))
            file.write(json.dumps({"date": f"{when:%Y-%m-%d}", "text": text}) + "\n")
    return path


def test_no_more_windows_have_a_false_call_than_the_setting_says(tmp_path: Path) -> None:
    dated = read(corpus(tmp_path / "null.jsonl"))
    found = [summary(called(dated, seed)) for seed in range(1, 7)]
    windows = sum(one["windows"] for one in found)
    assert sum(one["all born"] for one in found) > 500
    # At 0.05 up to 4 of 78 are expected; more than 9 come by chance once in a hundred times.
    assert windows == 6 * (MONTHS - 1)
    assert sum(one["windows with born"] for one in found) <= 9
    assert sum(one["windows with risen or fallen"] for one in found) <= 9
