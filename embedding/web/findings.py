"""What is said of a finding: sentences made of the record of its row alone.

A row says one thing in one measure: a word of changed meaning how many of its closest words are
new, a new word how many documents have it, a word used more (or less) often how many of 1,000
documents had it before and have it now.
"""

from __future__ import annotations

from collections.abc import Sequence

from embedding.trends.contrast import ContrastRow
from embedding.trends.rows import Story, TrendReport, TrendRow, WordChange
from embedding.web import formats
from embedding.web.text import PageText

_NAMED = 3
"""Words or sources that a sentence names."""
HEADLINE_WORD = 28
"""Characters of a word in a headline."""
SUREST = 1000
"""No finding is said to be surer than one fluke in so many."""


def row_sentences(name: str, row: TrendRow, report: TrendReport, t: PageText) -> tuple[str, ...]:
    """What a row of the ranking `name` found, in sentences; none where its record says nothing."""
    if name == "moved":
        return _moved(row, report, t)
    return (_born(row, report, t),) if name == "born" else (_rate(name, row, report, t),)


def story_sentences(story: Story, report: TrendReport, t: PageText) -> tuple[str, str]:
    """What happened and since when; who wrote it and how sure that is."""
    role = story.words[0].role
    named = [member.word for member in story.words if member.role == role][:_NAMED]
    happened = words_sentence(role, named, report.snapshot.label, t)
    if story.first != report.snapshot.label:
        happened += " " + t("said_began", window=t.window(story.first))
    return happened, " ".join(_who(story, named, report, t))


def words_sentence(role: str, words: Sequence[str], label: str, t: PageText) -> str:
    """What happened to words of one role in a window, in a sentence."""
    short = [formats.short_word(word) for word in words]
    most = t("words_and").join(short[:-1] or short)
    joined = t("words_and_last").join([most, *short[1:][-1:]])
    return t(f"said_{role}", words=joined, n=len(short), window=t.window(label))


def headline_sentence(name: str, row: TrendRow, report: TrendReport, t: PageText) -> str:
    """What a finding of the ranking `name` comes to, with since when and how much."""
    label = report.snapshot.label
    values = {"word": formats.short_word(row.word, HEADLINE_WORD), "window": t.window(label)}
    if name == "moved":
        return _turned(row, values, t)
    was, now = formats.rates(row.usual, row.rate)
    if name != "fallen" and len(row.series) > 1 and first_seen(row, report) == label:
        return t("head_first", rate=now, **values)
    if name == "born":
        return t("head_born", rate=now, **values)
    if row.rate > row.usual if name == "risen" else row.rate < row.usual:
        key = "head_risen" if name == "risen" else "head_fallen"
        return t(key, usual=was, rate=now, than=_than(row, report, t), **values)
    return words_sentence(name, [row.word], label, t)


def change_sentences(change: WordChange, t: PageText) -> tuple[str, str]:
    """The window since which a word is used differently, or that none is clear, and what stands
    beside it: how sure that is, and windows that were not compared.

    A window is named only where its report calls the word.
    """
    windows = ", ".join(map(t.window, change.unjudged))
    left_out = [t("change_unjudged", windows=windows)] if windows else []
    if change.kind is None or change.since is None or change.q is None:
        known = change.windows - len(change.unjudged) > 1
        return t("change_none" if known else "change_unknown"), " ".join(left_out)
    window = t.window(change.since)
    text = window if change.kind == "moved" else t("change_born", window=window)
    return text, " ".join([sureness(change.q, t, significant=True), *left_out])


def use_sentences(row: ContrastRow, first: str, second: str, t: PageText) -> tuple[str, str]:
    """That two sources use a word differently, and how often each used it."""
    names = formats.short_word(first, 24), formats.short_word(second, 24)
    differs = t("use_differs", word=formats.short_word(row.word), source=names[0], other=names[1])
    often = t(
        "mentions",
        one=names[0],
        other=names[1],
        first=formats.number(row.mentions_first),
        second=formats.number(row.mentions_second),
    )
    return differs, often


def sureness(q: float, t: PageText, *, significant: bool) -> str:
    """How many of such findings are flukes; that it may be one where it is no finding."""
    n = one_in(q)
    return t("odds", n=formats.number(n)) if significant and n > 1 else t("no_odds")


def one_in(q: float) -> int:
    """The largest n, at most SUREST, with q ≤ 1/n."""
    return SUREST if q <= 1 / SUREST else max(1, int(1 / q))


def first_seen(row: TrendRow, report: TrendReport) -> str | None:
    """Label of the first of its windows that used a word; None if it was read as several before."""
    if row.written_before:
        return None
    rates = zip(report.windows[-len(row.series) :], row.series, strict=False)
    return next((label for label, rate in rates if rate > 0), None)


def _moved(row: TrendRow, report: TrendReport, t: PageText) -> tuple[str, ...]:
    more = row.pulled_by(_NAMED)[0]
    sentences = []
    both = row.neighbours and row.neighbours_before
    if row.significant and both and report.compared_with is not None:
        window = t.window(report.compared_with.label)
        n, k = len(row.neighbours), sum(w.changed for w in row.neighbours)
        sentences.append(t("closest_new" if k else "closest_same", n=n, k=k, window=window))
    if more:
        words = ", ".join(formats.short_word(word, 20) for word in more)
        sentences.append(t("company_more", words=words))
    return tuple(sentences)


def _turned(row: TrendRow, values: dict[str, str], t: PageText) -> str:
    """The words that stood beside a word and those that do now; else those used like it."""
    if row.since is not None:
        values = {**values, "window": t.window(row.since)}
    pulled = row.pulled_by(_NAMED)[::-1]
    if all(pulled):
        before, after = pulled
        key = "head_beside"
    else:
        near = (row.neighbours_before, row.neighbours)
        before, after = (tuple(w.word for w in side if w.changed)[:_NAMED] for side in near)
        key = "head_alike" if before and after else "head_moved"
    joined = (
        t("head_and").join(formats.short_word(w, 20) for w in side) for side in (before, after)
    )
    sides = dict(zip(("before", "after"), joined, strict=True))
    return t(key, **values, **({} if key == "head_moved" else sides))


def _born(row: TrendRow, report: TrendReport, t: PageText) -> str:
    now = report.snapshot.label
    sentences = [t("born_documents", n=formats.number(row.documents), window=t.window(now))]
    if row.authors is not None:
        sentences.append(t("written_by", n=formats.number(row.authors)))
    first = first_seen(row, report)
    if row.written_before:
        parts = ", ".join(formats.short_word(part, 20) for part in row.parts)
        sentences.append(t("born_parts", parts=parts))
    elif first == now and len(row.series) > 1 and report.compared_with is not None:
        key = "born_before_none" if len(report.windows) > 2 else "born_not_in"
        sentences.append(t(key, window=t.window(report.compared_with.label)))
    elif first is not None and first != report.windows[0]:
        sentences.append(t("born_first", window=t.window(first)))
    return " ".join(sentences)


def _rate(name: str, row: TrendRow, report: TrendReport, t: PageText) -> str:
    before = row.usual
    was, now = formats.rates(before, row.rate)
    goes = "rate_more" if row.rate > before else "rate_less"
    wanted = "rate_more" if name == "risen" else "rate_less"
    if float(was.replace(",", "")) == float(now.replace(",", "")) or goes != wanted:
        return t("rate_only", now=now)
    return t(wanted, now=now, usual=was, than=_than(row, report, t))


def _than(row: TrendRow, report: TrendReport, t: PageText) -> str:
    """The windows before, or the one, that `row.usual` is the rate of."""
    if row.rate_usual is None or len(report.baseline) < 2:
        return "" if report.compared_with is None else t.window(report.compared_with.label)
    labels = [*(id.rpartition("-")[0] for id in report.baseline), report.snapshot.label]
    key = "than_gap" if any(map(formats.missing_between, labels, labels[1:])) else "than_span"
    first, *_, last = map(t.window, labels[:-1])
    return t(key, span=t.span(len(report.baseline)), first=first, last=last)


def _who(story: Story, named: Sequence[str], report: TrendReport, t: PageText) -> list[str]:
    """How many documents have its most used word, of which sources; how sure the story is."""
    most, window = story.most_used, report.window_of(story) or report.snapshot
    documents = most.documents_before if most.role == "fallen" else most.documents
    # A window that one source alone was read in needs no name of it.
    alone = [name for name, n in window.documents.items() if n] == [*story.sources]
    sentence = t(
        "said_who" if most.word in named else "said_who_most",
        word=formats.short_word(most.word),
        n=formats.number(documents),
        window=t.window(window.label),
        origin="" if alone else t("said_origin", sources=_few(story.sources)),
    )
    wrote = [] if most.authors is None else [t("written_by", n=formats.number(most.authors))]
    few = [t("said_few")] if story.few_authors else []
    return [sentence, *wrote, *few, sureness(story.q, t, significant=story.significant)]


def _few(names: Sequence[str]) -> str:
    shown = [formats.short_word(name, 30) for name in names[:_NAMED]]
    return ", ".join(shown) + (" …" if len(names) > _NAMED else "")
