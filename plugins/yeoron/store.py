"""A store of snapshots, and what it answers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, InputError
from embedding.snapshots.store import LATEST
from yeoron.table import Table
from yeoron.word import Word

if TYPE_CHECKING:
    from embedding.ask.answers import Answers
    from embedding.training import TrainProgress
    from embedding.trends.rows import Story, TrendReport, TrendRow

_MOVED = ("word", "significant", "q", "shift", "documents_before", "documents", "neighbours")
_COUNTED = ("word", "significant", "q", "documents_before", "documents", "sources")
_ROW = (
    *("word", "significant", "q", "p", "z", "shift", "since"),
    *("count_before", "count", "documents_before", "documents", "authors_before", "authors"),
    *("per_1000_before", "per_1000", "sources", "neighbours_before", "neighbours", "parts"),
)
_TITLES = {
    "moved": "Words whose meaning changed",
    "born": "New words",
    "risen": "Words used more often",
    "fallen": "Words used less often",
}


def open(  # noqa: A001 - as in gzip.open
    store: str | Path, *, reports: str | Path | None = None, **trends: Any
) -> Store:
    """Open a store: a folder, or any address of fsspec (`s3://bucket/snapshots`).

    reports  folder of finished reports, which answer at once; None: `trends` beside a store that
             is a folder, where a platform keeps them
    trends   settings of comparisons by their names (`trends.*` in the reference of settings)

    Raises YeoronError for an address or a setting that cannot work.
    """
    from embedding.ask.answers import Answers
    from embedding.ask.config import AskConfig
    from embedding.trends.config import TrendsConfig

    if not isinstance(store, str | Path):
        raise InputError(f"yeoron.open: {store!r}: a folder or an address is accepted.")
    config = validate(TrendsConfig, trends, "yeoron.open")
    local = "://" not in str(store)
    if local and not Path(store).is_dir():
        raise InputError(f"{store}: there is no such folder; a snapshot store is expected.")
    if reports is None and local:
        reports = Path(store).resolve().parent / "trends"
    folder = None if reports is None else Path(reports)
    answers = Answers(AskConfig(snapshots=str(store), reports=folder, trends=config), whole=True)
    opened = answers.store
    if not (opened.list() or opened.broken() or opened.withdrawn()):
        raise InputError(
            f"{store}: there is no snapshot in it; the folder that `yeoron train … --out FOLDER` "
            "or a platform writes is accepted."
        )
    return Store(answers)


def train(
    corpus: str | Path,
    *,
    out: str | Path,
    dated: str | None = None,
    tokenizer: str = "whitespace",
    progress: Any = None,
    **more: Any,
) -> Store:
    """Train on a file and open what was published, as `yeoron train` does; needs `yeoron[train]`.

    corpus     text, one sentence a line, or JSON Lines with `date` and `text`; plain or .xz
    out        folder of the new snapshot store
    dated      a snapshot for each hour, day, week or month of the dates
    tokenizer  how text becomes words: kiwi, whitespace, … (`text.tokenizer`)
    progress   called with a TrainProgress now and then
    more       fields of TrainRequest: nodes, epochs, min_count, model={"dim": 200}, …

    A script that calls it keeps its own code under `if __name__ == "__main__":`, as nodes are
    processes. Raises YeoronError for what cannot work, before anything is written.
    """
    from embedding.training import TrainRequest, train_corpus
    from embedding.training.request import WITHOUT_SECTION

    def silent(_: TrainProgress) -> None:
        """Show nothing."""

    known = {*TrainRequest.model_fields, *chain.from_iterable(WITHOUT_SECTION.values())}
    if unknown := sorted(set(more) - known):
        names = {*known, *inspect.signature(train).parameters}
        close = get_close_matches(unknown[0], names, n=1)
        do = f"did you mean {close[0]!r}?" if close else "take it out."
        raise ConfigError(f"yeoron.train: unknown setting {unknown[0]!r}; {do}")
    text = {"tokenizer": tokenizer, "mask": tokenizer != "whitespace", **more.pop("text", {})}
    asked = {"corpus": corpus, "out": out, "dated": dated, "text": text, **more}
    request = validate(TrainRequest, asked, "yeoron.train")
    train_corpus(request, progress or silent)
    return open(out)


class Store:
    """Snapshots, one a window of time, and what changed between them.

    Where a method takes a window, `latest`, a label (`2020-03`) or the id of a snapshot is
    accepted. Every method raises YeoronError with one sentence for what it cannot answer.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def windows(self) -> Table:
        """A row a window, oldest first: its label, words, what was read in it, what it lacks."""
        from embedding.ask.questions import SnapshotsQuestion

        rows = []
        for ref in SnapshotsQuestion().answer(self._answers).refs:
            manifest = self._answers.store.manifest(ref.id)
            rows.append(
                {
                    "window": manifest.window.label,
                    "words": ref.words,
                    "documents": sum(manifest.documents.values()),
                    "tokens": sum(manifest.tokens.values()),
                    "sources": sorted(manifest.documents),
                    "lacks": list(ref.lacks),
                    "snapshot": ref.id,
                }
            )
        return Table(rows, f"{len(rows):,} windows of {self._answers.store.uri}")

    def stories(self, window: str = LATEST) -> Table:
        """What happened in a window: words that changed together, surest first.

        q  share of stories this sure that chance alone would give; `significant` ones are findings
        """
        report = self._report(window)
        rows = [_story(story) for story in report.stories]
        shown = ("title", "significant", "q", "first", "documents", "sources")
        title = f"Stories of {report.snapshot.label}{_clear(report.stories, len(rows))}"
        return Table(rows, title, _notes(report), shown)

    def moved(self, window: str = LATEST, *, against: str | None = None) -> Table:
        """Words whose meaning changed since the window before; surest first.

        `significant` ones are findings; the title says how many there are among the words compared.

        against  the window before, as another raises InputError: changes show between neighbours
        """
        return self._ranking("moved", window, against, _MOVED)

    def born(self, window: str = LATEST, *, against: str | None = None) -> Table:
        """Words that enough documents hold for the first time."""
        return self._ranking("born", window, against, _COUNTED)

    def risen(self, window: str = LATEST, *, against: str | None = None) -> Table:
        """Words that more documents hold than usual."""
        return self._ranking("risen", window, against, _COUNTED)

    def fallen(self, window: str = LATEST, *, against: str | None = None) -> Table:
        """Words that fewer documents hold than usual."""
        return self._ranking("fallen", window, against, _COUNTED)

    def scores(self, window: str = LATEST, *, against: str | None = None) -> Table:
        """The figures of every word that was compared, surest first."""
        report = self._report(window, against)
        rows = list(self._answers.scores(report, None).rows())
        return Table(rows, f"All words compared in {report.snapshot.label}", _notes(report))

    def word(self, word: str) -> Word:
        """One word through all windows."""
        _check_text("word", word)
        from embedding.ask.questions import ChangeQuestion, WordQuestion

        history = WordQuestion(word).answer(self._answers)
        return Word(history, lambda: ChangeQuestion(history.word).answer(self._answers))

    def nearest(self, word: str, window: str = LATEST, n: int = 10) -> Table:
        """The n words with the nearest vectors in the model at the end of a window.

        The model remembers the windows before; `word(…).history()` has the words that were used
        alike in each window. nearness is 1 for the same vector.
        """
        _check_text("word", word)
        if not isinstance(n, int) or n < 1:
            raise InputError(f"n: {n!r}: a whole number from 1 on is accepted.")
        from embedding.ask.questions import NearestQuestion

        snapshot = self._answers.open(self._id("window", window))
        words = NearestQuestion(word, snapshot.id, n).answer(self._answers)
        title = f"Nearest to {word} in {snapshot.manifest.window.label}"
        rows = [{"word": near, "nearness": figure} for near, figure in words]
        return Table(rows, title, [snapshot.unreadable] if snapshot.unreadable else ())

    def contrast(self, first: str, second: str | None = None, window: str = LATEST) -> Table:
        """Words that a source uses differently than another, or than all others; surest first."""
        from embedding.ask.questions import ContrastQuestion
        from embedding.show.columns import neighbour_words

        for role, source in (("first", first), ("second", first if second is None else second)):
            _check_text(role, source)
        name = self._id("window", window)
        contrast = ContrastQuestion(first, second or "", name).answer(self._answers)
        columns = ("word", "significant", "q", "p", "z", "mentions_first", "mentions_second")
        rows = [
            {**{column: getattr(row, column) for column in columns}, **neighbour_words(row)}
            for row in contrast.rows
        ]
        pair = f"{contrast.first} and {contrast.second} in {contrast.label}"
        shown = ("word", "significant", "q", "neighbours_first", "neighbours_second")
        return Table(rows, f"{pair}, {contrast.compared:,} words", (), shown)

    def vectors(
        self, words: Sequence[str] | None = None, window: str = LATEST
    ) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Words and their vectors, float32 [n, dim]; those of `words` that a window has, or all."""
        from embedding.ask.questions import VectorsQuestion

        chosen = None if words is None else tuple(words)
        return VectorsQuestion(chosen, self._id("window", window)).answer(self._answers)

    def __repr__(self) -> str:
        return f"yeoron.open({self._answers.store.uri!r}): {len(self._answers.list()):,} windows"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.windows()._repr_html_()

    def _id(self, role: str, window: str) -> str:
        """The id of the snapshot that a call names."""
        if not isinstance(window, str):
            raise InputError(
                f"{role}: {window!r}: text is accepted: a label such as '2020-03', an id, or "
                "'latest'."
            )
        return self._answers.store.require(window)

    def _report(self, window: str, against: str | None = None) -> TrendReport:
        from embedding.ask.questions import BetweenQuestion, ReportQuestion

        name = self._id("window", window)
        if against is None:
            return ReportQuestion(name).answer(self._answers)
        return BetweenQuestion(self._id("against", against), name).answer(self._answers)

    def _ranking(self, name: str, window: str, against: str | None, shown: Sequence[str]) -> Table:
        from embedding.show.columns import trend_record
        from embedding.trends.report import refuse_apart

        report = self._report(window, against)
        if name == "moved" and against is not None:
            refuse_apart(report)
        records = map(trend_record, getattr(report, name))
        rows = [{column: record[column] for column in _ROW} for record in records]
        than = "" if report.compared_with is None else f" and {report.compared_with.label}"
        clear = _clear(getattr(report, name), report.compared(name))
        title = f"{_TITLES[name]}: {report.snapshot.label}{than}{clear}"
        return Table(rows, title, _notes(report), shown)


def _check_text(role: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{role}: {value!r}: text is accepted.")


def _clear(rows: Sequence[TrendRow | Story], compared: int) -> str:
    """How many findings there are among what was compared, as the end of a title."""
    clear = sum(row.significant for row in rows)
    return f"; {f'{clear:,}' if clear else 'none'} clear among {compared:,}"


def _notes(report: TrendReport) -> list[str]:
    return [note.text for note in report.notes]


def _story(story: Story) -> dict[str, object]:
    roles, figures = story.by_role(), ("significant", "q", "first", "documents", "voices")
    return {
        "title": " · ".join(story.title),
        **{name: getattr(story, name) for name in (*figures, "few_authors")},
        "sources": list(story.sources),
        **{role: list(roles.get(role, ())) for role in _TITLES},
        "id": story.id,
    }
