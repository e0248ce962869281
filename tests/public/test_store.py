"""`import yeoron`: what it answers from a store, and the sentence where it cannot."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import yeoron
from embedding.trends.report import build_report


@pytest.fixture(scope="module")
def folder(planted: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    planted.make_store(str(path))
    return path


@pytest.fixture(scope="module")
def store(folder: Path) -> yeoron.Store:
    return yeoron.open(folder)


def test_rankings_are_those_of_the_report(store: yeoron.Store) -> None:
    report = build_report(store._answers)
    for name in ("moved", "born", "risen", "fallen"):
        table = getattr(store, name)()
        assert [row["word"] for row in table] == [row.word for row in getattr(report, name)]
        assert [row["q"] for row in table] == [row.q for row in getattr(report, name)]
        assert report.snapshot.label in table.title
    assert [row["id"] for row in store.stories()] == [story.id for story in report.stories]
    assert report.scores is not None
    assert len(store.scores()) == len(report.scores)


def test_a_window_is_named_by_label_or_id_and_compared_with_any_earlier(store) -> None:
    windows = store.windows()
    last = windows[-1]
    for name in ("latest", last["window"], last["snapshot"]):
        assert store.moved(name)[:3].to_arrow() == store.moved()[:3].to_arrow()
    first = store.moved(against=windows[0]["window"])
    assert f"{last['window']} and {windows[0]['window']};" in first.title


def test_a_word_has_a_row_for_each_window(store: yeoron.Store) -> None:
    word = store.word(store.moved()[0]["word"])
    assert [row["window"] for row in word.history()] == [row["window"] for row in store.windows()]
    assert {row["source"] for row in word.sources()} == set(store.windows()[-1]["sources"])
    assert word.word in repr(word)


def test_vectors_are_those_of_the_words_asked_for(store: yeoron.Store) -> None:
    words, vectors = store.vectors()
    some, few = store.vectors([words[3], "없는말", words[1]])
    assert some == [words[3], words[1]]
    np.testing.assert_array_equal(few, vectors[[3, 1]])
    assert few.dtype == np.float32


def test_frames_hold_all_rows_and_columns(store: yeoron.Store) -> None:
    table = store.scores()
    pandas, polars = table.to_pandas(), table.to_polars()
    assert tuple(pandas.columns) == tuple(polars.columns) == table.columns
    assert len(pandas) == len(polars) == len(table)
    assert polars["word"].to_list() == pandas["word"].tolist() == [row["word"] for row in table]


def test_what_is_shown_is_escaped_and_says_how_much_there_is() -> None:
    rows = [{"word": "<b>&", "q": 0.00123, "near": ["가", "나"], "sure": True, "none": None}] * 25
    table = yeoron.Table(rows, "T <i>", ["a note"])
    shown = table._repr_html_()
    assert "<b>&" not in shown.replace("<b>T", "")
    assert "&lt;b&gt;&amp;" in shown
    assert "T &lt;i&gt;" in shown
    assert "… and 5 more rows" in repr(table)
    assert repr(table).splitlines()[-1] == "a note"
    assert "0.00123  가 나  yes" in repr(table)
    assert repr(yeoron.Table([], "Nothing")) == "Nothing\nNo rows."


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda store: store.moved("2031-01"), "no snapshot and no window"),
        (lambda store: store.word("없는말"), "no snapshot holds it"),
        (lambda store: store.nearest("없는말"), "no word"),
        (lambda store: store.contrast("뉴스"), "does not say how words were used"),
        (lambda store: store.moved(against="latest"), "does not lie before"),
        (lambda store: store.moved(202105), "window: 202105: text is accepted: a label such as"),
        (lambda store: store.moved(against=4), "against: 4: text is accepted"),
        (lambda store: store.vectors(window=None), "window: None: text is accepted"),
        (lambda store: store.word(None), "word: None: text is accepted"),
        (lambda store: store.nearest(7), "word: 7: text is accepted"),
        (lambda store: store.nearest("마스크", n="5"), "n: '5': a whole number from 1 on"),
        (lambda store: store.contrast("뉴스", 3), "second: 3: text is accepted"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    store: yeoron.Store, ask: Callable[[yeoron.Store], object], said: str
) -> None:
    with pytest.raises(yeoron.YeoronError, match=said) as told:
        ask(store)
    assert str(told.value).endswith(".")
    assert "\n" not in str(told.value)


def test_a_store_or_setting_that_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(yeoron.YeoronError, match="there is no such folder"):
        yeoron.open(tmp_path / "nothing")
    with pytest.raises(yeoron.YeoronError, match="neighbours"):
        yeoron.open(folder, neighbours="many")
    with pytest.raises(yeoron.YeoronError, match=r"yeoron\.train: nodes"):
        yeoron.train(tmp_path / "c.txt", out=tmp_path / "s", nodes=0)
    with pytest.raises(
        yeoron.YeoronError, match=r"a number above 0 and below 1 is accepted, got 7\."
    ):
        yeoron.open(folder, false_discovery=7)
    with pytest.raises(yeoron.YeoronError, match=r"None: a folder or an address is accepted"):
        yeoron.open(None)
    with pytest.raises(yeoron.YeoronError, match=r"there is no snapshot in it"):
        yeoron.open(tmp_path)
    with pytest.raises(yeoron.YeoronError, match=r"'tokenizr'; did you mean 'tokenizer'\?"):
        yeoron.train(tmp_path / "c.txt", out=tmp_path / "s", tokenizr="kiwi")
    assert list(tmp_path.iterdir()) == []


def test_a_title_says_how_many_findings_there_are(store: yeoron.Store, folder: Path) -> None:
    table, compared = store.moved(), build_report(store._answers).compared("moved")
    clear = sum(row["significant"] for row in table)
    assert clear > 0
    assert table.title.endswith(f"; {clear} clear among {compared}")
    strict = yeoron.open(folder, false_discovery=1e-300)
    assert len(strict.moved()) > 0
    assert strict.moved().title.endswith(f"; none clear among {compared}")
    assert "; none clear among " in strict.stories().title


def test_everything_public_has_a_docstring_and_types() -> None:
    for name in yeoron.__all__:
        thing = getattr(yeoron, name)
        if isinstance(thing, str):
            continue
        assert thing.__doc__, name
        methods = vars(thing).items() if inspect.isclass(thing) else [(name, thing)]
        for own, method in methods:
            if not own.startswith("_") and inspect.isfunction(method):
                assert method.__doc__, own
                assert "return" in method.__annotations__, own
    assert (Path(sys.modules["yeoron"].__file__).parent / "py.typed").is_file()
