"""The records of a trend report with the figures of every word that was compared, their JSON form,
and what the reports of all windows say of a word: since when it is used differently, or is there at
all. That is the last window that calls it changed in meaning, or new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from embedding.kernel.durable import unreadable
from embedding.kernel.errors import InputError
from embedding.kernel.records import SnapshotRef
from embedding.trends.online import FAMILIES, OnlineTests
from embedding.trends.plain import from_plain, to_plain

_APART = {"apart": True}
"""Marks a field that has no place in the JSON form."""


@dataclass(frozen=True)
class NeighbourRow:
    """A near word, how near (snapshots/nearness.py), whether it was not near at the other time."""

    word: str
    similarity: float
    changed: bool = False


@dataclass(frozen=True)
class SourceRate:
    """One source's share of a word: documents that hold it, before and now."""

    source: str
    documents_before: int
    documents: int
    read_before: int
    read: int


_UNSURE = 0.05
"""p above which a change does not stand when something is left out."""


@dataclass(frozen=True)
class Support:
    """Who moved a word (`moved.support`).

    sources          share of the change that each source brought; they add up to 1
    without_source   p of the change without each of them; empty where there is one
    authors          share of the group of authors that brought most
    without_authors  p of the change without them
    without_busiest  p without the hundredth of authors who wrote most documents in the window; None
                     where authors are not known
    """

    sources: Mapping[str, float]
    without_source: Mapping[str, float]
    authors: float
    without_authors: float
    without_busiest: float | None = None

    @property
    def few_authors(self) -> bool:
        """Whether it is no change without the group of authors that brought most."""
        return self.without_authors > _UNSURE

    @property
    def busiest_authors(self) -> bool:
        """Whether it is no change without the authors who wrote most in the window."""
        return self.without_busiest is not None and self.without_busiest > _UNSURE

    @property
    def needs(self) -> tuple[str, ...]:
        """The sources without any one of which it is no change."""
        return tuple(name for name, p in self.without_source.items() if p > _UNSURE)


@dataclass(frozen=True)
class ContextPull:
    """A context that pulled a word (`worker/usage/contextshift.py`).

    share  of the word's shift; negative: it works against it
    before, after  shares of what stands beside the word, before the window and in it
    """

    word: str
    share: float
    before: float
    after: float


@dataclass(frozen=True)
class TrendRow:
    """One word of a ranking with its evidence.

    score              what the ranking is by, higher first; moved: the shift of significant
                       rows, 0 of others, which stand by z behind them
    z, p, q            how unusual it is (see noise.py for moved, arrivals.py for the others)
    significant        q is at most the configured false-discovery rate
    shift              moved only: how much it changed by the ranking estimator. By usage and other
                       distances 0 is no change and 1 is nothing in common
    shift_low, shift_high  its interval of 95 %, where documents say it
    expected           moved only: shift of a typical word of the same frequency
    figures            moved only: shift by every estimator
    log_odds, spread   born, risen, fallen: see arrivals.py
    since              moved only, if significant: the window in which it changed (moved.py)
    burst              born, risen: weight of the burst that this window is part of, in nats, times
                       the spread over sources (`arrivals.bursts`); 0 outside of one
    count_*, documents_*   occurrences, and documents that hold it, in the windows compared
    authors_*          known authors of these documents; None where none is known
    documents_deduplicated*   one document of each author, and of copies of a text (copies.py), as
                       the tests of born, risen and fallen words count them; None in an old report
    rate_*             documents that hold it, per 1,000 documents
    rate_usual         risen, fallen: what it was judged against, the same figure had each source
                       used it as in all windows of `TrendReport.baseline` together
    sources            by source, those that held it in either window
    neighbours_*       words that were used alike in each window (likeness.py), or the model's
                       nearest words; of a significant row `changed` marks those of one time only
    by_use             whether neighbours are those of each window's use. False: too few documents
                       use the word, or a snapshot does not say how; then both are the model's
    series             rate for each of the last windows, oldest first, the reported one last
    parts              words that it was read as before; empty where it always was one word
    written_before     whether it was written before this window, where it was read as `parts` then
    support            moved only, if significant: who moved it
    contexts           moved only, if significant: what pulled it, the largest shares first
    """

    word: str
    score: float
    z: float
    p: float
    q: float
    significant: bool
    count_before: int
    count: int
    documents_before: int
    documents: int
    rate_before: float
    rate: float
    sources: tuple[SourceRate, ...]
    neighbours_before: tuple[NeighbourRow, ...]
    neighbours: tuple[NeighbourRow, ...]
    series: tuple[float, ...]
    shift: float | None = None
    shift_low: float | None = None
    shift_high: float | None = None
    expected: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    log_odds: float | None = None
    spread: float | None = None
    since: str | None = None
    burst: float | None = None
    rate_usual: float | None = None
    parts: tuple[str, ...] = ()
    written_before: bool = False
    support: Support | None = None
    contexts: tuple[ContextPull, ...] = ()
    documents_deduplicated_before: int | None = None
    documents_deduplicated: int | None = None
    authors_before: int | None = None
    authors: int | None = None
    by_use: bool = True

    @property
    def usual(self) -> float:
        """The rate that this window's was judged against; of an old report the one before."""
        return self.rate_before if self.rate_usual is None else self.rate_usual

    def pulled_by(self, n: int = 5) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """At most n contexts that pulled it and stand beside it more, and n less, than before.

        Without those that work against the change.
        """
        pulling = [context for context in self.contexts if context.share > 0]
        more = tuple(context.word for context in pulling if context.after > context.before)
        less = tuple(context.word for context in pulling if context.after <= context.before)
        return more[:n], less[:n]


FEW_UNITS, _MANY_DOCUMENTS = 2, 8
"""So many documents in so few units are those of few authors."""


@dataclass(frozen=True)
class StoryWord:
    """A word of a story; role: a name of RANKINGS, or `moved` first where it is in several.

    authors  known ones of its documents, of those before of a word that fell; None: none is known
    """

    word: str
    role: str
    q: float
    documents_before: int
    documents: int
    authors: int | None = None


@dataclass(frozen=True)
class Story:
    """Words that changed together (stories.py).

    id         stays the same while the story goes on; first: label of the window it began in
    words      surest first
    q          of the surest word, times the number of stories; at most 1
    significant   q is at most the configured false-discovery rate
    documents  that use its word `most_used`, in this window (before it, if all words fell)
    voices     units of documents that use its most widespread word; all that an author wrote is in
               one unit. 0 where a snapshot does not say it
    sources    those that wrote them, most documents first
    """

    id: str
    first: str
    words: tuple[StoryWord, ...]
    q: float
    significant: bool
    documents: int
    voices: int
    sources: tuple[str, ...]

    @property
    def few_authors(self) -> bool:
        """Whether the documents are those of one or two groups of authors only."""
        return 0 < self.voices <= FEW_UNITS and self.documents >= _MANY_DOCUMENTS

    def by_role(self) -> dict[str, tuple[str, ...]]:
        """Its words by what happened to them, in the order of RANKINGS; no role without words."""
        roles = {role: tuple(w.word for w in self.words if w.role == role) for role in RANKINGS}
        return {role: words for role, words in roles.items() if words}

    @property
    def most_used(self) -> StoryWord:
        return most_used(self.words)

    @property
    def title(self) -> tuple[str, ...]:
        return tuple(member.word for member in self.words[:3])


def most_used(words: Sequence[StoryWord]) -> StoryWord:
    """Of one or more words that which most documents use: before the window, if all fell."""
    present = [member for member in words if member.role != "fallen"]
    if present:
        return max(present, key=lambda member: member.documents)
    return max(words, key=lambda member: member.documents_before)


@dataclass(frozen=True)
class WindowFigures:
    """A snapshot's window and what was read in it, by source."""

    id: str
    label: str
    start: str
    end: str
    words: int
    tokens: Mapping[str, int]
    documents: Mapping[str, int]

    @property
    def total_documents(self) -> int:
        return sum(self.documents.values())

    @property
    def total_tokens(self) -> int:
        return sum(self.tokens.values())


@dataclass(frozen=True)
class WindowSource:
    """What one source brought to a window.

    documents_before   in the window that it is compared with
    loss    before learning, in nats a pair; excess: above the mean of all. None: not measured
    """

    source: str
    documents: int
    documents_before: int
    tokens: int
    loss: float | None
    excess: float | None

    @property
    def missing(self) -> bool:
        return self.documents == 0


@dataclass(frozen=True)
class Bias:
    """Which source the model serves worst in a window.

    source  of the highest loss before learning; excess: nats above the mean
    mean    loss of all pairs of the window, in nats; losses by source
    """

    source: str
    excess: float
    mean: float
    losses: Mapping[str, float]


@dataclass(frozen=True)
class Note:
    """Something a reader has to know: a stable code, and the sentence that says it.

    needed  of a model that cannot be read: how many more words it has to read, about; else 0
    words   that the sentence names, if any; nodes or sources, where it is about these
    window  label of the window that it is about, where that is not the report's
    documents   how many documents it is about; 0: that is not known
    """

    code: str
    text: str
    needed: int = 0
    words: str = ""
    window: str = ""
    documents: int = 0


@dataclass(frozen=True)
class TrendReport:
    """What changed in one window; a pure function of snapshots and configuration.

    windows    labels of the windows that `series` covers
    baseline   ids of the snapshots whose windows document frequencies are compared with
    floor      noise floor by frequency: exposure, median, scale (stabilised, see noise.py)
    ranked     how many words were compared, by family of tests (`online.FAMILIES`)
    held_out   words that a change of the tokenizer touched: they are not ranked as moved
    bias       which source the model serves worst; None where fewer than two were scored
    scores     the figures of every word that was compared; None: in a table beside the report
    stories    which of the significant words changed together
    control    with `trends.control = "stream"`: where each sequence of tests stands (online.py)
    """

    snapshot: WindowFigures
    compared_with: WindowFigures | None
    baseline: tuple[str, ...]
    estimator: str
    config_digest: str
    moved: tuple[TrendRow, ...] = ()
    born: tuple[TrendRow, ...] = ()
    risen: tuple[TrendRow, ...] = ()
    fallen: tuple[TrendRow, ...] = ()
    notes: tuple[Note, ...] = ()
    windows: tuple[str, ...] = ()
    floor: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    ranked: Mapping[str, int] = field(default_factory=dict)
    held_out: tuple[str, ...] = ()
    bias: Bias | None = None
    stories: tuple[Story, ...] = ()
    control: Mapping[str, OnlineTests] = field(default_factory=dict)
    scores: WordScores | None = field(default=None, compare=False, repr=False, metadata=_APART)

    def by_documents(self, row: TrendRow) -> bool:
        """Whether a moved row was judged by the documents that use it, and not by its shift."""
        return self.estimator == "usage" and "usage" in row.figures

    def by_source(self) -> tuple[WindowSource, ...]:
        """Every source of this window or the one before, most documents first."""
        now, bias = self.snapshot, self.bias
        earlier = {} if self.compared_with is None else self.compared_with.documents
        losses = {} if bias is None else bias.losses
        sources = [
            WindowSource(
                source=name,
                documents=now.documents.get(name, 0),
                documents_before=earlier.get(name, 0),
                tokens=now.tokens.get(name, 0),
                loss=losses.get(name),
                excess=None if bias is None or name not in losses else losses[name] - bias.mean,
            )
            for name in {*now.documents, *now.tokens, *earlier}
        ]
        return tuple(sorted(sources, key=lambda source: (-source.documents, source.source)))

    def significant(self, ranking: str) -> tuple[TrendRow, ...]:
        return tuple(row for row in getattr(self, ranking) if row.significant)

    def called(self) -> dict[str, tuple[str, ...]]:
        """The words that are findings, each with the rankings that call it one."""
        rankings: dict[str, tuple[str, ...]] = {}
        for name in RANKINGS:
            for row in self.significant(name):
                rankings[row.word] = (*rankings.get(row.word, ()), name)
        return rankings

    def compared(self, ranking: str) -> int:
        """How many words a ranking (a name of RANKINGS) was chosen from."""
        return self.ranked.get(FAMILIES[ranking], 0)

    def significant_stories(self) -> tuple[Story, ...]:
        return tuple(story for story in self.stories if story.significant)

    def window_of(self, story: Story) -> WindowFigures | None:
        """The window whose documents hold a story: the one before, where all its words fell."""
        fell = story.by_role().keys() == {"fallen"}
        return self.compared_with if fell else self.snapshot

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form without `scores`; figures rounded to six digits, null if not finite."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TrendReport:
        """Inverse of `to_dict`; raises InputError when a field is missing or unknown."""
        if why := unreadable(data.get(FORMAT_FIELD, REPORT_FORMAT), (REPORT_FORMAT,)):
            raise InputError(f"not a trend report that can be read: {why}.")
        try:
            report: TrendReport = from_plain(
                cls, {k: v for k, v in data.items() if k != FORMAT_FIELD}
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"not a trend report: {error}.") from error
        return report


ROLES = {
    "moved": "changed in meaning",
    "born": "new",
    "risen": "more often",
    "fallen": "less often",
}
"""Rankings of a report, each with the words for what happened to a word in it."""
REPORT_FORMAT = 1
"""Version of a saved report; one without it is of before it was kept."""
FORMAT_FIELD = "format"
RANKINGS = tuple(ROLES)


BEFORE = "before_unjudged"
"""Of a window whose forerunner lacks how words were used."""
_UNJUDGED = ("usage_not_handed_in", "usage_limit", "node_lost", "document_gone")
_UNCLEAR = ("not_converged", "unread_model", "unread_vectors", "few_documents", "too_few_documents")
OF_MEANING = frozenset({BEFORE, *_UNJUDGED, *_UNCLEAR})
"""Those on words that moved, which say nothing of how often words are used."""


def judged(report: TrendReport) -> bool:
    """Whether the window has texts to judge by, and nothing of how they use words is missing."""
    without = {*_UNJUDGED, "one_author", "only_copies", "few_documents"}
    return not any(note.code in without for note in report.notes)


_SCORES = (
    *(("rank", pa.int32()), ("word", pa.string())),
    *((name, pa.float64()) for name in ("z", "p", "q")),
    ("significant", pa.bool_()),
    *((name, pa.float64()) for name in ("shift", "expected")),
    *((name, pa.int64()) for name in ("count_before", "count")),
    *((name, pa.int64()) for name in ("documents_before", "documents")),
)
SCORES_SCHEMA = pa.schema(_SCORES)
SCORES_COLUMNS = tuple(SCORES_SCHEMA.names)
_KEY = b"yeoron.key"
_BATCH = 1_000


@dataclass(frozen=True)
class WordScores:
    """The figures of n words by rank, as an Arrow table with `SCORES_SCHEMA`.

    key  says of which snapshots and settings they are (`key_of`)
    """

    table: pa.Table
    key: str

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One plain row a word, some at a time; figures rounded as in a report."""
        for batch in self.table.to_batches(max_chunksize=_BATCH):
            yield from (to_plain(row) for row in batch.to_pylist())

    def of(self, words: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The rows of those of `words` that were compared, by word."""
        import pyarrow.compute as pc  # only here: settings lead here, and every process reads them

        chosen = pc.is_in(self.table.column("word"), value_set=pa.array(words, pa.string()))
        return {row["word"]: to_plain(row) for row in self.table.filter(chosen).to_pylist()}

    def to_arrow(self) -> pa.Table:
        """The table with the key in the metadata of its schema."""
        return self.table.replace_schema_metadata({_KEY: self.key.encode()})

    @classmethod
    def from_arrow(cls, table: pa.Table) -> WordScores:
        """Inverse of `to_arrow`; raises ValueError for another table."""
        key = (table.schema.metadata or {}).get(_KEY)
        if key is None or not table.schema.equals(SCORES_SCHEMA):
            raise ValueError("not a table of word scores")
        return cls(table.replace_schema_metadata(None), key.decode())


LOOKED_BACK = 60
"""Windows among which the last one with a finding is looked for."""


def findings_of(report: TrendReport, rankings: Iterable[str] = RANKINGS) -> int:
    """Words that are findings in these rankings, each once."""
    return len({row.word for name in rankings for row in report.significant(name)})


def last_with_findings(
    refs: Sequence[SnapshotRef],
    report_of: Callable[[SnapshotRef], TrendReport | None],
    rankings: Iterable[str] = RANKINGS,
) -> TrendReport | None:
    """The report of the latest of `refs` (oldest first) that has a finding in these rankings.

    report_of  None where the report of a snapshot is not known: that window is passed over
    """
    for ref in reversed(refs[-LOOKED_BACK:]):
        report = report_of(ref)
        if report is not None and findings_of(report, rankings):
            return report
    return None


def sureness(q: float) -> str:
    """How sure a finding is: q, or that it is below 0.001."""
    return "q < 0.001" if q < 0.001 else f"q {q:.3f}"


@dataclass(frozen=True)
class WordChange:
    """What the reports say of a word.

    kind      `moved`: its meaning changed in the window `since`; `born`: it was new in it; None:
              no window calls it
    q         share of flukes among the findings of that window that are as sure
    unjudged  labels of windows in which no word's use could be compared with the windows before
    windows   how many reports were asked
    """

    word: str
    kind: Literal["moved", "born"] | None
    since: str | None
    q: float | None
    unjudged: tuple[str, ...]
    windows: int


def word_change(word: str, reports: Sequence[TrendReport]) -> WordChange:
    """What the reports of the windows of a store, oldest first, say of a word."""
    compared = [report for report in reports if report.compared_with is not None]
    unjudged = tuple(report.snapshot.label for report in compared if not report.ranked.get("moved"))
    for report in reversed(compared):
        kinds: tuple[Literal["moved", "born"], ...] = ("moved", "born")
        for kind in kinds:
            row = next((called for called in report.significant(kind) if called.word == word), None)
            if row is not None:
                since = row.since or report.snapshot.label
                return WordChange(word, kind, since, row.q, unjudged, len(reports))
    return WordChange(word, None, None, None, unjudged, len(reports))
