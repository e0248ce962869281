"""Each sentence of the front page is computed again from the record that its figures come from.

The record is what `/api/report` answers for the window shown. A sentence that no rule here knows,
a figure that is not the record's, or two figures for one thing on one page fail the test.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import httpx
import pytest
from lxml import html as parser
from unguarded import unguarded

from embedding.snapshots.store import SnapshotStore
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.trends.rows import (
    RANKINGS,
    ContextPull,
    Story,
    Support,
    TrendReport,
    TrendRow,
    findings_of,
)
from embedding.web.config import WebConfig
from embedding.web.findings import one_in
from embedding.web.plain import plain
from embedding.web.text import PageText
from waiting import until

EN = PageText("en")
N, QUOTED, NAMES = r"([\d,]+(?:\.\d+)?)", r"“([^”]+)”", r"((?:“[^”]+”(?:, | and )?)+)"
WHEN = r"((?:\w+ )?\d{4})"
PLANS = {
    "all kinds": {},
    "one source": {"documents": {"뉴스": 3000}, "lone": {}},
    "nothing": {"moved": {}, "born": {}, "risen": {}, "lone": {}},
    "a word that came up before": {"risen": {"마스크": 2}, "born": {"신천지": ("바이러스", 2)}},
    "another seed, long": {"seed": 5, "windows": 6, "risen": {"마스크": 5, "투자": 5, "버스": 5}},
}
HOSTILE_WORDS = "hostile words, two meanings"
"""The store that other tests of the page share, whose sources differ."""
UNSURE = 0.05
"""p of a change without some of its texts above which the page says that it is not clear."""
HAPPENED = {
    "moved": "changed in meaning",
    "born": "emerged",
    "risen": "used more often",
    "fallen": "used less often",
}


def number(text: str) -> float:
    return float(text.replace(",", ""))


@dataclass
class PageRecord:
    """The record of a page, and what the page said of documents: by word and window."""

    report: TrendReport
    counted: dict[tuple[str, str], set[float]] = field(default_factory=lambda: defaultdict(set))
    supported: set[str] = field(default_factory=set)

    def documents(self, word: str, n: str, when: str) -> None:
        """That so many documents of a window have a word."""
        rows = [row for name in RANKINGS for row in getattr(self.report, name) if row.word == word]
        assert rows, word
        now = when == EN.window(self.report.snapshot.label)
        assert now or when == EN.window(self.report.compared_with.label)
        assert {row.documents if now else row.documents_before for row in rows} == {number(n)}
        self.counted[word, when].add(number(n))


Rule = tuple[str, Callable[..., None]]


def reads(text: str, rules: list[Rule]) -> None:
    """Every sentence of a text is one that a rule knows, and what the rule says of it holds."""
    at, text = 0, " ".join(text.split())
    while at < len(text):
        for pattern, holds in rules:
            found = re.compile(pattern + r"(?: |$)").match(text, at)
            if found:
                holds(*found.groups())
                at = found.end()
                break
        else:
            raise AssertionError(f"no rule knows: {text[at:]}")


def odds(q: float) -> Rule:
    def holds(n: str) -> None:
        assert number(n) == one_in(q)
        assert q <= 1 / number(n)

    return rf"At most 1 in {N} findings this clear is a fluke\.", holds


def of_story(story: Story, page: PageRecord) -> list[Rule]:
    label = page.report.snapshot.label

    def happened(words: str, what: str, when: str) -> None:
        role = next(role for role, said in HAPPENED.items() if said in what)
        assert when == EN.window(label)
        named = re.findall(QUOTED, words)
        assert tuple(named) == story.by_role()[role][:3]
        for word in named:
            assert word in {row.word for row in page.report.significant(role)}
        assert what.startswith("w") == (role in ("risen", "fallen"))
        assert what.startswith("were ") == (len(named) > 1 and what.startswith("w"))

    def began(when: str) -> None:
        assert when == EN.window(story.first)
        assert story.first < label

    def who(most: str | None, word: str, n: str, when: str, sources: str | None) -> None:
        assert word in {one.word for one in story.words}
        page.documents(word, n, when)
        assert (when != EN.window(label)) == (story.by_role().keys() == {"fallen"})
        assert number(n) == story.documents
        read = [name for name, k in page.report.window_of(story).documents.items() if k]
        assert (sources is None) == (read == [*story.sources])
        assert sources is None or sources.split(", ") == [*story.sources][:3]
        assert (most is None) == (word in story.by_role()[story.words[0].role][:3])

    verbs = "|".join(f"(?:was |were )?{said}" for said in HAPPENED.values())

    def wrote(n: str) -> None:
        assert number(n) == story.most_used.authors

    few = (r"Few authors wrote them\.", lambda: None)
    return [
        (rf"{N} authors? wrote of it\.", wrote),
        (rf"{NAMES} ({verbs}) in {WHEN}\.", happened),
        (rf"The story began in {WHEN}\.", began),
        (
            rf"(Its most used word, )?{QUOTED},? is in {N} documents? of {WHEN}(?: \((.+?)\))?\.",
            who,
        ),
        *([few] if story.few_authors else []),
        odds(story.q),
    ]


def of_row(name: str, row: TrendRow, page: PageRecord) -> list[Rule]:
    report = page.report

    def rate(now: str, way: str | None, usual: str | None, than: str | None) -> None:
        assert number(now) == pytest.approx(row.rate, abs=0.51)
        if way is None:
            return
        assert (way == "up") == (name == "risen") == (number(now) > number(usual))
        assert number(usual) == pytest.approx(row.usual, abs=0.51)
        n = len(report.baseline)
        before = EN.window(report.compared_with.label)
        assert than == (f"the {n} months before" if n > 1 else before)

    def unknown_before(when: str) -> None:
        assert when == EN.window(report.compared_with.label)
        assert not any(row.series[:-1])

    def first(when: str) -> None:
        at = next(at for at, rate in enumerate(row.series) if rate > 0)
        assert when == EN.window(report.windows[-len(row.series) :][at])

    def closest(k: str | None, n: str, when: str) -> None:
        assert row.significant
        changed = sum(one.changed for one in row.neighbours)
        assert (int(k or 0), int(n)) == (changed, len(row.neighbours))
        assert when == EN.window(report.compared_with.label)

    def company(words: str) -> None:
        assert words.split(", ") == [*row.pulled_by(3)[0]]

    def authors(n: str) -> None:
        assert number(n) == row.authors

    def spread(n: str | None, source: str | None) -> None:
        held = [one.source for one in row.sources if one.documents]
        assert len(held) == int(n or 1)
        assert source is None or held == [source]

    return [
        (rf"It is in {N} of 1,000 documents(?:, (up|down) from {N} in (.+?))?\.", rate),
        (
            rf"It is in {N} documents? of {WHEN}\.",
            lambda n, when: page.documents(row.word, n, when),
        ),
        (rf"{N} authors? wrote of it\.", authors),
        (rf"Up to {WHEN} no document had it\.", unknown_before),
        (rf"It was first seen in {WHEN}\.", first),
        (rf"(\d+) of its (\d+) closest words are new since {WHEN}\.", closest),
        (rf"()Its (\d+) closest words are those of {WHEN}\.", closest),
        (r"It now appears more often with (.+?)\.", company),
        (r"\((?:(\d+) sources?|only in (.+?))\)", spread),
    ]


def of_lede(page: PageRecord, differing: set[tuple[str, str]]) -> list[Rule]:
    report = page.report
    stories = report.significant_stories()

    def read(n: str, sources: str, when: str) -> None:
        assert number(n) == report.snapshot.total_documents
        assert when == EN.window(report.snapshot.label)
        assert int(sources) == sum(1 for n in report.snapshot.documents.values() if n)

    def stand_out(n: str) -> None:
        assert int(n) == len(stories)

    def compared(n: str) -> None:
        assert number(n) == report.ranked["moved"]

    def no_larger() -> None:
        assert not stories
        assert findings_of(report) == 0

    def differs(word: str, source: str) -> None:
        assert (source, word) in differing

    least = [odds(max(one.q for one in stories))] if stories else []
    return [
        (rf"We read {N} documents from (\d+) sources? in {WHEN}\.", read),
        (r"(\d+) changes? stands? out from the usual ups and downs\.", stand_out),
        (rf"No word clearly changed in meaning \({N} were compared\)\.", compared),
        (r"This month’s changes are no larger than usual\.", no_larger),
        (rf"{QUOTED} is the word (.+?) uses least like the other sources\.", differs),
        *least,
    ]


def of_lead(page: PageRecord) -> list[Rule]:
    report = page.report
    label = EN.window(report.snapshot.label)

    def row_of(word: str, *names: str) -> TrendRow:
        return next(r for name in names for r in report.significant(name) if r.word == word)

    def first(word: str, when: str, rate: str) -> None:
        row = row_of(word, "born", "risen")
        assert not any(row.series[:-1])
        assert (when, number(rate)) == (label, pytest.approx(row.rate, abs=0.51))

    def established(word: str, when: str, rate: str) -> None:
        row = row_of(word, "born")
        assert any(row.series[:-1])
        assert (when, number(rate)) == (label, pytest.approx(row.rate, abs=0.51))

    def rate(word: str, way: str, now: str, when: str, usual: str, than: str) -> None:
        row = row_of(word, "risen" if way == "up" else "fallen")
        assert (way == "up") == (number(now) > number(usual))
        assert number(now) == pytest.approx(row.rate, abs=0.51)
        assert number(usual) == pytest.approx(row.usual, abs=0.51)
        assert when == label
        n, before = len(report.baseline), EN.window(report.compared_with.label)
        assert than == (f"the {n} months before" if n > 1 else before)

    def turned(word: str, before: str, after: str, when: str, *, beside: bool) -> None:
        row = row_of(word, "moved")
        more, less = row.pulled_by(3)
        assert beside == bool(more and less)
        sides = (row.neighbours_before, row.neighbours)
        near = [tuple(one.word for one in side if one.changed)[:3] for side in sides]
        assert [tuple(before.split(", ")), tuple(after.split(", "))] == (
            [less, more] if beside else near
        )
        assert when == EN.window(row.since or report.snapshot.label)

    return [
        (rf"{QUOTED} first appeared in {WHEN}, in {N} of 1,000 documents", first),
        (rf"{QUOTED} became established in {WHEN}, in {N} of 1,000 documents", established),
        (rf"{QUOTED} went (up|down) to {N} of 1,000 documents in {WHEN}, from {N} in (.+)", rate),
        (
            rf"{QUOTED} moved from beside (.+?) to beside (.+?) \(since {WHEN}\)",
            partial(turned, beside=True),
        ),
        (
            rf"{QUOTED}: used like (.+?) before, like (.+?) since {WHEN}",
            partial(turned, beside=False),
        ),
    ]


@pytest.fixture(scope="module")
def client_for(planted, tmp_path_factory, client_of, client) -> Iterator:
    """The page over the store of each plan, made once."""
    made: dict[str, httpx.Client] = {HOSTILE_WORDS: client}

    def of(name: str) -> httpx.Client:
        if name not in made:
            root = tmp_path_factory.mktemp("figures")
            plan = planted.Plan(**{"fillers": 200, **PLANS[name]})
            planted.make_store(str(root / "snapshots"), plan)
            config = WebConfig(
                snapshots=str(root / "snapshots"), reports=root / "trends", token_file=root / "t"
            )
            made[name] = client_of(unguarded(config))
        return made[name]

    yield of
    for name in PLANS:
        if name in made:
            made[name].close()


def pages(client: httpx.Client, language: str) -> list[tuple[TrendReport, object]]:
    """Every window's record and its page, once both are computed."""
    found = []
    for one in client.get("/api/snapshots").json()["snapshots"]:
        address = f"/window/{one['id']}"

        def there(address: str = address) -> httpx.Response | None:
            answer = client.get(address, headers={"accept-language": language})
            late = answer.status_code == 202 or "data-later" in answer.text
            return None if late else answer

        answer = until(there)
        record = client.get("/api/report", params={"id": one["id"]}).json()
        found.append((plain(TrendReport.from_dict(record)), parser.fromstring(answer.text)))
    return found


def text_of(node: object) -> str:
    return " ".join(node.text_content().split())


def own(node: object, kind: str) -> list[object]:
    return node.xpath(f".//*[contains(concat(' ', @class, ' '), ' {kind} ')]")


@pytest.mark.parametrize("plan", [*PLANS, HOSTILE_WORDS])
def test_no_sentence_of_the_page_contradicts_its_record(client_for, plan) -> None:
    for report, tree in pages(client_for(plan), "en"):
        page = PageRecord(report)
        differing = set()
        for item in tree.xpath("//section[@aria-labelledby='disagree']//ol/li"):
            said = text_of(own(item, "evidence")[0])
            used = re.fullmatch(
                rf"(.+?) uses {QUOTED} differently from the other sources\. "
                rf"Used {N} times by (.+?), {N} times by the other sources\.",
                said,
            )
            assert used, said
            assert used[1] == used[4]
            differing.add((used[1], used[2]))
        for sentence in own(own(tree, "hero")[0], "lede"):
            if not sentence.xpath("a"):
                reads(text_of(sentence), of_lede(page, differing))
        leads = [*tree.xpath("//h1[a]"), *own(tree, "further")]
        assert bool(leads) == bool(findings_of(report))
        for lead in leads:
            reads(text_of(lead), of_lead(page))
        _stories(tree, page)
        for name in RANKINGS:
            _ranking(tree, name, page)
        _totals(tree, page)
        assert all(len(figures) == 1 for figures in page.counted.values()), page.counted
        if plan == HOSTILE_WORDS and report.snapshot.label == "2020-03":
            assert {word for word, _ in page.counted} >= {"코로나", "신천지", "마스크"}
            assert differing


def _stories(tree: object, page: PageRecord) -> None:
    stories = page.report.significant_stories()
    items = tree.xpath("//section[@aria-labelledby='stories']/ol/li")
    assert len(items) == min(10, len(stories))
    for item, story in zip(items, stories, strict=False):
        assert [text_of(one) for one in item.xpath("./h3/*[contains(@class, 'word')]")] == [
            *story.title
        ]
        reads(text_of(own(item, "said")[0]), of_story(story, page))
        chips = [text_of(one) for one in own(item, "chip")]
        assert chips == [word for words in story.by_role().values() for word in words[:12]]


def _ranking(tree: object, name: str, page: PageRecord) -> None:
    rows = {}
    for row in getattr(page.report, name):
        shown = row.word if len(row.word) <= 28 else row.word[:27] + "…"
        rows[" ".join(shown.split())] = row
    for item in tree.xpath(f"//section[@aria-labelledby='{name}']//ol/li"):
        row = rows[text_of(own(item, "lead")[0])]
        said, *more = own(item, "evidence")
        reads(text_of(said), of_row(name, row, page))
        (sure,) = own(item, "sure")
        assert text_of(sure) == ("clear" if row.significant else "may be chance")
        if row.significant:
            reads(sure.get("title"), [odds(row.q)])
        if name == "moved":
            found = re.search(rf"{N} documents?", text_of(more[0]))
            page.documents(row.word, found[1], EN.window(page.report.snapshot.label))
            now = own(item, "now")
            chips = own(now[0], "chip") if now else []
            assert len(chips) == len(row.neighbours)
            marked = sum(" new" in one.get("class") for one in chips)
            assert marked == sum(one.changed for one in row.neighbours)
            _support(item, row, page)


def _support(item: object, row: TrendRow, page: PageRecord) -> None:
    """Who moved a word, since when, and which words pull it: each from the row of the record."""
    counts = re.fullmatch(
        rf"(?:clear|may be chance) {N} documents?(?: · {N} authors?)?(?: · since {WHEN})?",
        text_of(own(item, "counts")[0].getparent()),
    )
    assert counts, text_of(item)
    assert number(counts[1]) == row.documents
    assert (row.since is not None) == row.significant
    assert (None if counts[2] is None else number(counts[2])) == row.authors
    assert counts[3] == (EN.window(row.since) if row.since else None)
    for kind, words in zip(("more", "less"), row.pulled_by(), strict=True):
        line = [
            [text_of(one) for one in own(each, "chip")]
            for each in own(item, "pulled")
            if text_of(own(each, "tag")[0]) == EN(f"pulled_{kind}")
        ]
        assert line == ([[*words]] if words else [])
    said = own(item, "support")
    assert bool(said) == (row.support is not None)
    if row.support is None:
        return
    by, text = row.support, text_of(said[0])
    page.supported.add(row.word)
    doubts = [text_of(one) for one in said[0].xpath("./strong")]
    right = [EN("support_authors")] if by.without_authors > UNSURE else []
    right += [EN("support_busiest")] if (by.without_busiest or 0.0) > UNSURE else []
    right += [f"not clear without {one}" for one, p in by.without_source.items() if p > UNSURE]
    assert doubts == right
    shares = text.removesuffix(" ".join(doubts)).strip()
    if len(by.sources) < 2:
        assert shares == ""
        return
    parts = re.fullmatch(r"Where the change comes from: (.+)", shares)[1].split(", ")
    named = dict(one.removesuffix(" %").rsplit(" ", 1) for one in parts)
    assert named.keys() == by.sources.keys()
    for name, percent in named.items():
        assert float(percent) == pytest.approx(100 * by.sources[name], abs=0.51)
    assert sum(map(float, named.values())) == pytest.approx(100, abs=len(named) / 2 + 0.01)


def _totals(tree: object, page: PageRecord) -> None:
    read = page.report.snapshot
    figures = [text_of(one) for one in own(tree, "totals")[0].xpath(".//dd")]
    said = [number(figure.split()[0]) for figure in figures]
    assert said == [read.total_documents, read.total_tokens, read.words]
    by_source = [text_of(one).split()[0] for one in own(own(tree, "sources")[0], "amount")]
    assert sum(map(number, by_source)) == read.total_documents
    (shown,) = tree.xpath("//nav[@class='timeline']//li[@class='shown']")
    n = findings_of(page.report)
    if page.report.compared_with is not None:
        assert text_of(own(shown, "what")[0]).startswith(
            EN("found_some", n=n) if n else EN("found_nothing")
        )


SUPPORTS = (
    Support({"뉴스": 0.71, "게시판": 0.4, "댓글": -0.11}, {"뉴스": 0.3, "댓글": 0.001}, 0.2, 0.01),
    Support({"뉴스": 0.5, "게시판": 0.5}, {"뉴스": 0.2, "게시판": 0.06}, 0.9, 0.4, 0.3),
    Support({"뉴스": 1.0}, {}, 0.1, 0.05, 0.05),
    None,
)


def test_who_moved_a_word_is_said_as_the_record_has_it(config, tmp_path, client_of) -> None:
    report = build_report(SnapshotStore(config.snapshots))
    pulls = (ContextPull("감염", 0.5, 0.1, 0.4), ContextPull("배우", 0.3, 0.4, 0.1))
    moved = tuple(
        replace(row, support=SUPPORTS[at % len(SUPPORTS)], contexts=pulls[: at % 3])
        for at, row in enumerate(report.moved)
    )
    assert len(moved) >= len(SUPPORTS)
    storage.save(replace(report, moved=moved), tmp_path)
    with client_of(unguarded(config.model_copy(update={"reports": tmp_path}))) as client:
        shown = [found for found in pages(client, "en") if found[0].snapshot == report.snapshot]
    ((known, tree),) = shown
    page = PageRecord(known)
    _ranking(tree, "moved", page)
    assert len(page.supported) > 1


@pytest.mark.parametrize("plan", ["all kinds", "a word that came up before"])
def test_korean_says_the_same_figures(client_for, plan) -> None:
    korean = PageText("ko")

    def figures(node: object, t: PageText, report: TrendReport) -> list[str]:
        said = " ".join(node.text_content().split())
        for label in report.windows:
            said = said.replace(t.window(label), "")
        return sorted(re.findall(r"\d[\d,.]*\d|\d", said))

    for (report, english), (_, other) in zip(
        pages(client_for(plan), "en"), pages(client_for(plan), "ko"), strict=True
    ):
        for kind in ("said", "lede", "evidence"):
            pair = own(english, kind), own(other, kind)
            assert len(pair[0]) == len(pair[1])
            for one, two in zip(*pair, strict=True):
                assert figures(one, EN, report) == figures(two, korean, report), text_of(two)
