"""A demo ends well only where it found what was planted, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from embedding.snapshots.format import Missing
from embedding.snapshots.store import SnapshotStore
from embedding.trends.rows import RANKINGS
from yeoron_demo.planted import Called, called, incomplete, verdict
from yeoron_demo.planted import planted as in_the_corpus
from yeoron_demo.summary import PLANTED_PART, print_checks
from yeoron_simweb.generated import BORN, CONTRAST, MOVED

NONE = {kind: [] for kind in RANKINGS}


def rows(*words: str) -> list[dict[str, object]]:
    return [{"word": word, "q": 1e-6} for word in words]


def windows(**april: list[dict[str, object]]) -> list[dict[str, object]]:
    quiet = [{"window": f"2021-0{month}", **NONE} for month in (1, 2, 3)]
    may = {"window": "2021-05", **NONE, "risen": rows(BORN.word)}
    return [*quiet, {"window": "2021-04", **NONE, **april}, may]


RIGHT = windows(born=rows(BORN.word), moved=rows(MOVED.word), risen=rows(BORN.word))
BOARD = [{"source": "sim-board", **rows(CONTRAST.word)[0]}]


def test_what_is_planted_is_what_the_generator_says() -> None:
    assert in_the_corpus() == {
        Called("2021-04", BORN.word, "new"),
        Called("2021-04", MOVED.word, "changed in meaning"),
        Called("sim-board", CONTRAST.word, "used differently"),
    }


def test_all_of_it_and_nothing_else_is_right() -> None:
    right, sentence = verdict(in_the_corpus(), called(RIGHT, BOARD))
    assert right
    assert sentence.endswith("; found: all of it, and nothing else")
    assert all(word in sentence for word in (BORN.word, MOVED.word, CONTRAST.word))


@pytest.mark.parametrize(
    ("trends", "contrasts", "says"),
    [
        (
            windows(risen=rows(BORN.word)),
            BOARD,
            f"missing: {MOVED.word} (changed in meaning, 2021-04), {BORN.word} (new, 2021-04)",
        ),
        (RIGHT, [], f"missing: {CONTRAST.word} (used differently, sim-board)"),
        (
            [*RIGHT, {"window": "2021-05", **NONE, "moved": rows(MOVED.word)}],
            BOARD,
            f"not planted: {MOVED.word} (changed in meaning, 2021-05)",
        ),
        (
            [{"window": "2021-03", **NONE, "risen": rows(BORN.word)}, *RIGHT],
            BOARD,
            f"not planted: {BORN.word} (more often, 2021-03)",
        ),
        (RIGHT, [*BOARD, {"source": "sim-list", **rows("경찰")[0]}], "not planted: 경찰"),
    ],
)
def test_what_is_missing_or_too_much_is_said(trends, contrasts, says) -> None:
    right, sentence = verdict(in_the_corpus(), called(trends, contrasts))
    assert not right
    assert says in sentence
    assert "found: " in sentence


def test_a_window_whose_usage_is_missing_is_named(planted, tmp_path) -> None:
    store = SnapshotStore(str(tmp_path))
    first, second = planted.stream(planted.Plan(windows=2, fillers=50))
    n, dim = first.vectors.shape
    whole = store.publish(first, planted.source_usage(n, dim, ("뉴스", "글판"), None))
    assert incomplete(store) == []
    store.publish(replace(second, parent=whole.id))
    assert incomplete(store) == [f"{second.window.label} says nothing of how words were used"]


def test_what_a_manifest_says_is_missing_is_named() -> None:
    lacks = (Missing(part="learning", reason="cut_early", where=("node-1",)),)
    manifest = SimpleNamespace(window=SimpleNamespace(label="2021-01"), missing=lacks)
    opened = SimpleNamespace(manifest=manifest, usage=object())
    store = SimpleNamespace(list=lambda: [SimpleNamespace(id="a")], open=lambda _: opened)
    assert incomplete(store) == ["2021-01 learning (cut_early)"]


def test_a_check_that_failed_is_said_and_what_was_found_is_said() -> None:
    checks = [
        {"part": "usage", "ran": False, "evidence": "2021-04 says nothing"},
        {"part": PLANTED_PART, "ran": True, "evidence": "planted: …; found: all of it"},
        {"part": "nodes", "ran": True, "evidence": "2 nodes trained"},
    ]
    console = Console(width=120, record=True)
    print_checks(checks, console)
    shown = console.export_text()
    assert "✗ usage: 2021-04 says nothing" in shown
    assert "✓ planted: …; found: all of it" in shown
    assert "trained" not in shown
