"""A word's history, and the terminal's tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from embedding.ask.questions import RankingAnswer
from embedding.exchange.payload import UNITS
from embedding.kernel.errors import InputError
from embedding.show import columns, terminal
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.evidence import nearest_words
from embedding.trends.history import word_history
from embedding.trends.mapping import neighbour_map
from embedding.trends.report import build_report
from embedding.trends.rows import WordChange


@pytest.fixture(scope="module")
def report(store):
    return build_report(store)


@pytest.fixture(scope="module")
def history(store):
    return word_history(store, "코로나")


def test_the_shift_stands_out_in_the_planted_window_only(history):
    shifts = [point.shift_previous for point in history.points]
    assert shifts[0] is None
    assert shifts[1].high < shifts[3].low
    assert shifts[2].high < shifts[3].low


def test_the_history_agrees_with_the_report(history, report):
    assert history.points[-1].shift_previous.shift == pytest.approx(report.moved[0].shift, abs=0.05)
    assert history.points[-1].documents == report.moved[0].documents


def test_frequencies_by_source_add_up(history):
    point = history.points[-1]
    assert [s.source for s in point.sources] == ["게시판", "뉴스", "댓글"]
    assert point.documents == sum(s.documents for s in point.sources)
    assert point.per_1000_documents == pytest.approx(point.documents / 6.5)
    news = point.sources[1]
    assert news.per_1000_tokens == pytest.approx(news.count / (60 * 3))


def test_new_neighbours_are_marked(history):
    assert not any(n.changed for n in history.points[0].neighbours)
    assert all(n.changed for n in history.points[-1].neighbours)


def test_a_born_word_has_no_shift_and_no_past(store):
    history = word_history(store, "신천지")
    assert [point.in_vocabulary for point in history.points] == [False, False, False, True]
    assert history.points[-1].shift_previous is None
    assert history.points[-1].neighbours
    assert [point.count > 0 for point in history.points] == [False, False, False, True]


def test_an_unknown_word_is_not_known(store):
    history = word_history(store, "없는말")
    assert not history.known
    assert len(history.points) == 4


def test_only_the_latest_windows_are_covered(store):
    history = word_history(
        store, "코로나", TrendsConfig().model_copy(update={"history_windows": 2})
    )
    assert [point.label for point in history.points] == ["2020-01", "2020-02"]


def text_of(renderable) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_tables_name_the_words(report, history):
    moved = text_of(terminal.ranking_table(report, "moved", limit=2))
    assert "코로나 *" in moved
    assert "2020-01" in moved
    assert "신천지" in text_of(terminal.ranking_table(report, "born"))
    last = moved.splitlines()[-3]
    assert "–" in last  # within the noise: no date
    born = text_of(terminal.ranking_table(report, "born"))
    assert "– → " in born


def test_a_clear_word_is_listed_with_how_much_it_changed_and_the_interval(report):
    row = replace(report.moved[0], significant=True, shift=0.42, shift_low=0.31, shift_high=0.53)
    assert "0.42 (0.31–0.53)" in text_of(
        terminal.ranking_table(replace(report, moved=(row,)), "moved")
    )
    unsure = replace(row, significant=False)
    shown = text_of(terminal.ranking_table(replace(report, moved=(unsure,)), "moved"))
    assert "0.42" in shown
    assert "0.31" not in shown


def test_tables_leave_out_the_models_shift_where_the_use_itself_is_known(history):
    assert "shift" in text_of(terminal.word_table(history))
    points = tuple(replace(point, by_use=True) for point in history.points)
    shown = text_of(terminal.word_table(replace(history, points=points)))
    assert "shift" not in shown
    assert "95 %" not in shown


def word_table_at(history, width: int) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(terminal.word_table(history, width=width))
    return console.export_text()


def test_a_words_table_has_its_sources_and_its_date(history):
    shown = text_of(terminal.word_table(history))
    assert "2019-11" in shown
    assert all(source in shown for source in ("뉴스", "게시판", "댓글"))
    rate = next(s for s in history.points[-1].sources if s.source == "댓글").per_1000_documents
    assert f"{rate:.2f}" in shown
    narrow = word_table_at(history, 80)
    assert "댓글" not in narrow
    assert "Rates by source: --csv" in narrow
    assert "2019-11" in narrow
    for change, said in (
        (
            WordChange("말", "moved", "2020-02", 0.005, (), 4),
            "Changed in meaning in 2020-02 (q 0.005)",
        ),
        (WordChange("말", "born", "2020-02", 0.005, (), 4), "New in 2020-02 (q 0.005)."),
        (WordChange("말", "born", "2020-02", 0.0, (), 4), "New in 2020-02 (q < 0.001)."),
        (WordChange("말", None, None, None, (), 4), "No clear change."),
        (WordChange("말", None, None, None, ("2020-02",), 4), "Not compared: 2020-02."),
        (WordChange("말", None, None, None, ("2020-02",), 2), "No windows were compared."),
    ):
        assert said in text_of(terminal.word_table(history, change))


def test_json_is_canonical(report, history):
    text = columns.as_json(RankingAnswer.of(report, "moved", 1))
    answer = json.loads(text)
    assert answer["rows"][0]["word"] == "코로나"
    assert len(answer["rows"]) == 1
    assert text == json.dumps(answer, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    assert json.loads(columns.as_json(history))["points"][3]["label"] == "2020-02"


def test_csv_has_one_line_a_row(report, history):
    rows = list(csv.DictReader(io.StringIO(columns.ranking_csv(report.risen))))
    assert [row["word"] for row in rows] == [row.word for row in report.risen]
    assert rows[0]["rank"] == "1"
    assert "뉴스:" in rows[0]["sources"]
    lines = list(csv.DictReader(io.StringIO(columns.word_csv(history))))
    assert len(lines) == 4 * 3
    assert lines[0]["shift_previous"] == ""


def test_a_word_that_looks_like_a_formula_stays_text(store, report, planted, tmp_path):
    born = {"=SUM": ("바이러스", 3)}
    hostile = planted.make_store(str(tmp_path), planted.Plan(born=born))
    text = columns.ranking_csv(build_report(hostile).born)
    assert "\n1,'=SUM," in text


@pytest.mark.parametrize("divider", [",", ";"])
@given(st.text("ab;=+-@,\"'\t\n ", max_size=12))
def test_no_cell_begins_a_formula_whatever_divides_cells(divider, word):
    text = columns.as_csv(["word"], [{"word": word}])
    for row in csv.reader(io.StringIO(text), delimiter=divider):
        for cell in row:
            assert cell[:1] not in {"=", "+", "-", "@", "\t"}, text


def test_an_unknown_ranking_is_refused(report):
    with pytest.raises(InputError, match="moved, born, risen, fallen"):
        RankingAnswer.of(report, "best")


def test_vectors_that_cannot_be_read_yet_show_no_neighbours(planted, tmp_path):
    """The page, the word's history and the map say what is missing in place of neighbours."""
    store = SnapshotStore(str(tmp_path))
    *earlier, last = planted.stream(planted.Plan())
    parent = None
    for data in (*earlier, replace(last, quality={"mean_cosine": 0.99, "words_read": 9_000.0})):
        parent = store.publish(replace(data, parent=parent)).id
    history = word_history(store, "코로나")
    assert history.points[-2].neighbours
    assert history.points[-1].neighbours == ()
    assert history.points[-1].shift_previous is None
    assert [note.code for note in history.notes][-1] == "unread_model"
    assert history.notes[-1].text.endswith("Nearest words are not shown.")
    windows = neighbour_map(store, "코로나").windows
    assert [one.snapshot for one in windows] == [ref.id for ref in store.list()][:-1]
    assert nearest_words(store.open(), "코로나", 5) == []


def used_as(data, word: str, like: str) -> Usage:
    """Sums of a window in which `word` stands where `like` does, whatever vectors say."""
    random = np.random.default_rng(9)
    true = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    true[data.words.index(word)] = true[data.words.index(like)]
    n, dim = true.shape
    noise = 0.05 * random.normal(size=(n, UNITS, dim))
    return Usage(
        rows=np.arange(n),
        sources=["뉴스"] * n,
        mentions=np.full(n, 60),
        pairs=np.full((n, UNITS), 2.0, np.float32),
        means=(true[:, None] + noise).astype(np.float32),
    )


def test_neighbours_of_a_window_are_by_its_text_alone(planted, tmp_path):
    """The vectors keep what was read before; in January the word was used as another one is."""
    store = SnapshotStore(str(tmp_path))
    parent = None
    for at, data in enumerate(planted.stream(planted.Plan())):
        usage = used_as(data, "마스크", "반도체" if at == 2 else "버스") if at else None
        parent = store.publish(replace(data, parent=parent), usage).id
    history = word_history(store, "마스크")
    first = [[one.word for one in point.neighbours][:1] for point in history.points]
    assert first[1:] == [["버스"], ["반도체"], ["버스"]]
    assert nearest_words(store.open(), "마스크", 1)[0][0] != "버스"
    flags = [{one.word: one.changed for one in point.neighbours} for point in history.points]
    assert not any(flags[1].values())  # those before are by vectors: nothing to compare with
    assert flags[2]["반도체"]
    assert [note.code for note in history.notes] == ["nearest_vectors"]
    assert history.notes[0].text.startswith("2019-11: ")
    # The rows of a report tell the same.
    report = build_report(store)
    row = next(row for row in report.risen if row.word == "마스크")
    near = [one.word for one in history.points[3].neighbours]
    assert [one.word for one in row.neighbours] == near
    assert row.neighbours_before[0].word == "반도체"


def test_a_word_that_a_window_does_not_use_has_no_neighbours_there(planted, tmp_path):
    store = SnapshotStore(str(tmp_path))
    data = planted.stream(planted.Plan(windows=1, moved={}, born={}, risen={}))[0]
    usage = used_as(data, "버스", "버스")
    kept = np.array([word != "버스" for word in data.words])
    some = replace(
        usage,
        rows=usage.rows[kept],
        sources=["뉴스"] * int(kept.sum()),
        mentions=usage.mentions[kept],
        pairs=usage.pairs[kept],
        means=usage.means[kept],
    )
    store.publish(data, some)
    assert word_history(store, "버스").points[0].neighbours == ()
    assert word_history(store, "택시").points[0].neighbours


@pytest.mark.parametrize("form", ["NFD", "NFKD", "NFC"])
def test_a_word_is_asked_for_in_any_form_of_its_letters(store, form) -> None:
    known = word_history(store, "코로나")
    assert word_history(store, unicodedata.normalize(form, "코로나")) == known
    neighbours = store.open().neighbours("코로나", 3)
    assert store.open().neighbours(unicodedata.normalize(form, "코로나"), 3) == neighbours
