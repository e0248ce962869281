"""`yeoron trends`: the same bytes from the same snapshots, and a sentence for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from embedding.kernel.records import SnapshotData, WordCounts
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage

LOSSES = {"nll": 2.0, "nll.뉴스": 1.9, "nll.게시판": 2.25, "nll.댓글": 1.95}
POLES = ("--positive", "백신,환자", "--negative", "배우,감독")
ANSWERS = (
    ("moved",),
    ("moved", "--all"),
    ("born",),
    ("risen",),
    ("fallen",),
    ("word", "코로나"),
    ("axis", "코로나", *POLES),
    ("contrast", "뉴스", "게시판"),
    ("bias",),
)
EVERY = """
import hashlib, json, sys
from pathlib import Path
from typer.testing import CliRunner
from embedding.cli import app
store, out, calls = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
found = {}
for call in calls:
    for form in ("--json", "--csv"):
        said = CliRunner().invoke(app, ["trends", *call, "--snapshots", store, form])
        assert said.exit_code == 0, (call, said.output, said.exception)
        found[" ".join([*call, form])] = said.stdout  # a slow machine is told why, beside it
CliRunner().invoke(app, ["trends", "report", "--snapshots", store, "--out", str(out)])
for path in sorted(out.rglob("*.*")):
    found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
print(json.dumps(found))
"""


def publish(
    uri: Path, planted: ModuleType, windows: int = 4, *, empty: bool = False
) -> SnapshotStore:
    """A store with losses and sums of usage; `empty`: nothing was read in the last window."""
    store, parent = SnapshotStore(uri), None
    for at, data in enumerate(planted.stream(planted.Plan(windows=windows, fillers=120))):
        data = replace(data, parent=parent, quality=LOSSES)
        if empty and at == windows - 1:
            none = np.zeros(0, np.int64)
            nothing = WordCounts((), (), none, none, none)
            data = replace(data, by_source=nothing, tokens={}, documents={}, quality={})
            parent = store.publish(data).id
        else:
            parent = store.publish(data, use_of(data, at)).id
    return store


def use_of(data: SnapshotData, seed: int) -> Usage:
    rng = np.random.default_rng(seed)
    sources, n = sorted(data.documents), len(data.words)
    true = np.tile(data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True), (3, 1))
    noise = rng.normal(size=(3 * n, 4, data.vectors.shape[1])) * 0.05
    return Usage(
        rows=np.tile(np.arange(n), 3),
        sources=[source for source in sources for _ in range(n)],
        mentions=np.full(3 * n, 40),
        pairs=rng.uniform(20, 60, (3 * n, 4)).astype(np.float32),
        means=(true[:, None] + noise).astype(np.float32),
    )


@pytest.fixture(scope="module")
def store(planted: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> SnapshotStore:
    return publish(tmp_path_factory.mktemp("answers"), planted)


def test_every_answer_is_the_same_in_processes_that_hash_otherwise(store, tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", EVERY, store.uri, str(tmp_path / seed), json.dumps(ANSWERS)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    try:
        said = [one.communicate(timeout=300) for one in started]
    finally:
        for one in started:
            one.kill()
    assert all(out for out, _ in said), said
    first, second = (json.loads(out) for out, _ in said)
    assert first.keys() == second.keys()
    assert len(first) == 2 * len(ANSWERS) + 7
    assert [name for name in first if first[name] != second[name]] == []


def test_the_help_of_the_group_has_examples_that_work(yeoron, store) -> None:
    said = yeoron("trends", "--help").out
    examples = [line.strip() for line in said.splitlines() if "yeoron trends " in line]
    calls = [line.split()[2:] for line in examples if not line.startswith("Usage")]
    assert [call[0] for call in calls] == ["moved", "stories", "word", "born"]
    for call in calls[1:]:
        done = yeoron("trends", *(store.uri if part == "store" else part for part in call))
        assert done.code == 0, done.err


def refused(yeoron, *call: object) -> str:
    """The one sentence on standard error; asserts that the command failed and said nothing else."""
    done = yeoron("trends", *call)
    assert done.code == 2, done.out + done.err
    assert done.out == ""
    said = done.err.strip()
    assert said.startswith("yeoron: ")
    assert said.endswith(".")
    assert "\n" not in said
    return said


@pytest.mark.parametrize("call", [("word",), ("axis", *POLES)])
def test_an_unknown_word_brings_the_nearest_spellings(yeoron, store, call) -> None:
    said = refused(yeoron, call[0], "코로너", *call[1:], "--snapshots", store.uri)
    assert "'코로너': no snapshot holds it; the nearest spellings are 코로나" in said
    said = refused(yeoron, call[0], "xyzzyq", *call[1:], "--snapshots", store.uri)
    assert "none is near it" in said


def test_unknown_sources_and_poles_are_told(yeoron, store) -> None:
    said = refused(yeoron, "contrast", "뉴스", "없음", "--snapshots", store.uri)
    assert "'없음': window 2020-02 has 게시판, 뉴스, 댓글" in said
    poles = ("--positive", "없는말", "--negative", "배우")
    assert "none of 없는말" in refused(yeoron, "axis", "코로나", *poles, "--snapshots", store.uri)


AXES = """
[[web.axes]]
name = "health"
positive = ["백신", "없는말"]
negative = ["배우", "감독"]
[[web.axes]]
name = "taste"
positive = ["단맛", "짠맛"]
negative = ["배우"]
"""


@pytest.fixture
def with_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yeoron.toml").write_text(AXES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.usefixtures("with_axes")
def test_without_poles_the_axes_of_the_settings_answer_by_name(yeoron, store) -> None:
    call = ("trends", "axis", "코로나", "--snapshots", store.uri)
    said = " ".join(yeoron(*call).out.split())
    assert "코로나 · health" in said
    assert "−1: 배우, 감독. 1: 백신, 없는말." in said
    assert "Not used in the last window, so passed over: 없는말." in said
    assert "taste: positive: none of 단맛, 짠맛 was used in 2020-02; give words" in said
    health, taste = json.loads(yeoron(*call, "--json").out)
    assert (health["axis"], health["error"], health["unused"]) == ("health", None, ["없는말"])
    given = ("--positive", "백신,없는말", "--negative", "배우,감독")
    assert health["points"] == json.loads(yeoron(*call, *given, "--json").out)["points"]
    assert (taste["axis"], "points" in taste) == ("taste", False)
    header, *lines = yeoron(*call, "--csv").out.splitlines()
    assert header.endswith(",snapshot,axis")
    assert len(lines) == len(health["points"])
    assert all(line.endswith(",health") for line in lines)


@pytest.mark.usefixtures("with_axes")
def test_one_axis_is_chosen_by_its_name(yeoron, store) -> None:
    call = ("axis", "코로나", "--snapshots", store.uri)
    (only,) = json.loads(yeoron("trends", *call, "--axis", "health", "--json").out)
    assert only["axis"] == "health"
    said = refused(yeoron, *call, "--axis", "taste")
    assert "axis taste, positive: none of 단맛, 짠맛 was used in 2020-02" in said
    said = refused(yeoron, *call, "--axis", "smell")
    assert "--axis smell: the settings' axes (web.axes) are health, taste." in said
    assert "beside poles" in refused(yeoron, *call, "--axis", "health", *POLES)
    said = refused(yeoron, *call, *POLES[:2])
    assert "--negative is missing: an axis needs both poles" in said


@pytest.mark.parametrize("ranking", ["moved", "born", "risen", "fallen"])
def test_one_snapshot_and_an_empty_window_have_no_ranking(
    yeoron, planted, tmp_path: Path, ranking: str
) -> None:
    publish(tmp_path / "one", planted, windows=1)
    said = refused(yeoron, ranking, "--snapshots", tmp_path / "one")
    assert "2019-11 is the first window" in said
    publish(tmp_path / "empty", planted, windows=2, empty=True)
    said = refused(yeoron, ranking, "--snapshots", tmp_path / "empty", "--json")
    assert "nothing was read in the window 2019-12" in said


def test_an_empty_window_has_no_sources_poles_or_losses(yeoron, planted, tmp_path: Path) -> None:
    publish(tmp_path, planted, windows=2, empty=True)
    for call in (("contrast", "뉴스", "게시판"), ("axis", "코로나", *POLES)):
        assert "does not say how words were used" in refused(yeoron, *call, "--snapshots", tmp_path)
    assert "of at least two sources" in refused(yeoron, "bias", "--snapshots", tmp_path)
    assert yeoron("trends", "word", "코로나", "--snapshots", tmp_path).code == 0


@pytest.mark.parametrize("call", [*ANSWERS, ("report",)], ids=lambda call: call[0])
def test_a_snapshot_that_fails_its_checksum_is_named(yeoron, planted, tmp_path, call) -> None:
    store = publish(tmp_path / "store", planted, windows=2)
    last = store.list()[-1]
    path = tmp_path / "store" / last.id / "counts.arrow"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(whole)
    out = ("--out", tmp_path / "out") if call == ("report",) else ()
    said = refused(yeoron, *call, "--snapshots", tmp_path / "store", *out)
    assert f"snapshot {last.id}: counts.arrow is damaged" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("call", [*ANSWERS, ("report",)], ids=lambda call: call[0])
def test_no_store_is_told(yeoron, tmp_path: Path, call) -> None:
    said = refused(yeoron, *call, "--snapshots", tmp_path / "none")
    assert f"snapshot store {tmp_path / 'none'}: it holds no snapshot yet" in said


@pytest.mark.parametrize("command", [("evaluate", "latest"), ("snapshot", "evaluate")])
def test_gold_files_with_other_columns_are_told(yeoron, store, tmp_path: Path, command) -> None:
    gold = tmp_path / "other.csv"
    gold.write_text("코로나;백신;9;x\n", encoding="utf-8")
    done = yeoron(*command, "--snapshots", store.uri, "--gold", gold, "--json")
    assert done.code == 2
    (sentence,) = json.loads(done.out)["skipped"]
    assert "other.csv" in sentence
    assert sentence.endswith(".")
    assert json.loads(done.out)["metrics"]["words"] > 100
