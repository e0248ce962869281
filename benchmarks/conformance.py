"""Public test sets of other projects run through ours: n of m, and each difference by name.

    python -m benchmarks conformance --from DIR

DIR holds checkouts of the projects, each under its repository's name; those that are not there are
skipped. Nothing of them is needed by the product or its tests, and nothing is kept of them but the
names of their cases. A difference with a reason is one where ours is meant to differ; one without
is a fault, or a limit that nobody has explained.
"""

from __future__ import annotations

import ast
import asyncio
import codecs
import json
import re
import sys
import warnings
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.kept import RESULTS
from embedding.crawl.charset import decode
from embedding.crawl.extract import extract
from embedding.crawl.jsonld import blocks, objects
from embedding.crawl.publication import _day_in_full, published
from embedding.crawl.robots import Robots
from embedding.importing.encodings import encoding_of
from embedding.importing.opening import opened
from embedding.importing.readers import READERS, ReadOptions
from embedding.kernel.errors import FetchError, InputError
from embedding.sources.base import FetchedPage
from embedding.sources.config import SourceConfig
from embedding.sources.feed import read_feed
from embedding.sources.times import parse_time
from yeoron_bench.results import ended, facts, keep_and_print

PACKAGES = ("yeoron", "trafilatura", "htmldate", "feedparser", "warcio", "protego", "pyarrow")


@dataclass(frozen=True)
class Case:
    """One case of a test set. `right`: as it says; `seen`: what came, where that differs;
    `shingles`: those of a text that are right, too many and missing."""

    name: str
    right: bool
    seen: str = ""
    shingles: tuple[int, int, int] | None = None


def feeds(folder: Path) -> Iterator[Case]:
    """Each feed is read without an error, with the items that feedparser finds in it."""
    import feedparser

    source = SourceConfig(name="x", kind="feed", url="https://h.example/", max_items=10_000)
    for path in sorted((folder / "tests").rglob("*")):
        if path.suffix not in (".xml", ".json") or "encoding" in path.parts:
            continue
        body = path.read_bytes()
        wanted = len([entry for entry in feedparser.parse(body).entries if entry.get("link")])
        try:
            text = decode(body, {"content-type": "application/xml"})
            feed = read_feed(source, FetchedPage("https://h.example/", text, body, {}))
        except FetchError as error:
            yield Case(path.name, right=wanted == 0, seen=error.reason)
            continue
        except Exception as error:  # noqa: BLE001  (that it raises is the finding)
            yield Case(path.name, right=False, seen=type(error).__name__)
            continue
        n = len(feed.references)
        yield Case(path.name, right=n >= wanted, seen=f"{n} of {wanted} items")


def times(folder: Path) -> Iterator[Case]:
    """The dates of feedparser's own tests; those of Korean services in Korean time."""
    tree = ast.parse((folder / "tests/test_date_parsers.py").read_text())
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Tuple) and len(node.elts) == 3):
            continue
        reader, value, expected = node.elts
        if not isinstance(reader, ast.Name) or not isinstance(value, ast.Constant):
            continue
        korean = reader.id.endswith(("nate", "onblog"))
        when = parse_time(value.value, "Asia/Seoul" if korean else "UTC")
        wanted = ast.literal_eval(expected)
        seen = None if when is None else tuple(when.timetuple()[:6])
        yield Case(repr(value.value), seen == (wanted and wanted[:6]), str(seen))


_LITERAL = r'((?:\s*"(?:[^"\\]|\\.)*")+)'
_ROBOTS = re.compile(
    r"(?:absl::string_view|std::string|string)\s+(\w+)\s*=\s*" + _LITERAL + r"\s*;"
    r"|EXPECT_(TRUE|FALSE)\(\s*(?:absl::)?IsUserAgentAllowed\(\s*"
    + r"\s*,\s*".join([rf"(\w+|{_LITERAL})"] * 3)
    + r"\s*\)"
)


def robots(folder: Path) -> Iterator[Case]:
    """Each EXPECT of Google's robots_test.cc."""
    values: dict[str, str] = {}
    for number, match in enumerate(_ROBOTS.finditer((folder / "robots_test.cc").read_text())):
        if match[1]:
            values[match[1]] = _unquoted(match[2])
            continue
        text, agent, url = (
            _unquoted(match[at]) if '"' in match[at] else values.get(match[at].strip(), "")
            for at in (4, 6, 8)
        )
        allowed = asyncio.run(_allowed(text, agent, url))
        yield Case(f"{number}: {agent} {url}", allowed is (match[3] == "TRUE"), str(allowed))


def _unquoted(literal: str) -> str:
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', literal)
    return "".join(parts).encode().decode("unicode_escape").encode("latin-1").decode()


async def _allowed(text: str, agent: str, url: str) -> bool:
    async def get(*_: object) -> tuple[int, str]:
        return 200, text

    whole = url if "://" in url else f"http://foo.bar{url}"
    return (await Robots(agent, 1000, get).verdict(whole)).allowed


def archives(folder: Path) -> Iterator[Case]:
    """warcio's archives: as many records as are in them, or one sentence."""
    from warcio.archiveiterator import ArchiveIterator

    for path in sorted((folder / "test/data").glob("*.*arc*")):
        wanted = 0
        try:
            with path.open("rb") as file:
                for record in ArchiveIterator(file, arc2warc=True):
                    wanted += record.rec_type in ("response", "resource", "conversion")
        except Exception:  # noqa: BLE001  (what is broken is broken for everybody)
            wanted -= 1
        try:
            raws = list(READERS.get("warc")(path, ReadOptions(), 0))
        except InputError as error:
            yield Case(path.name, right=wanted <= 0, seen=str(error).rsplit(": ", 1)[-1])
            continue
        n = sum(len(raw.numbers) + len(raw.wrong) for raw in raws)
        yield Case(path.name, right=n >= wanted, seen=f"{n} of {wanted} records")


def tables(folder: Path) -> Iterator[Case]:
    """csv-spectrum: each table equals the JSON beside it."""
    for path in sorted((folder / "csvs").glob("*.csv")):
        wanted = json.loads((folder / "json" / f"{path.stem}.json").read_text())
        rows: list[dict[str, str]] = []
        for raw in READERS.get("csv")(path, ReadOptions(), 0):
            columns = {name: column.to_pylist() for name, column in raw.columns.items()}
            rows += [
                {name: column[at] or "" for name, column in columns.items()}
                for at in range(len(raw.numbers))
            ]
        yield Case(path.name, rows == wanted, f"{len(rows)} rows")


def encodings(folder: Path) -> Iterator[Case]:
    """chardet's files: the text is that of the encoding by which their folder is called."""
    for path in sorted((folder / "tests").glob("*/*")):
        name = path.parent.name.lower()
        codec = next((alias for alias in (name, name.rsplit("-", 1)[0]) if _codec(alias)), "")
        if not path.is_file() or not codec:
            continue
        body = path.read_bytes()
        try:
            wanted = body.decode(codec)
        except UnicodeError:
            continue
        try:
            with opened(path) as file:
                seen = encoding_of(file, path).name
            right = body.decode(seen, "replace").lstrip("\ufeff") == wanted.lstrip("\ufeff")
        except InputError as error:
            seen, right = str(error).rsplit(": ", 1)[-1], False
        yield Case(f"{path.parent.name}/{path.name}", right, seen)


def _codec(name: str) -> bool:
    try:
        return codecs.lookup(name).name not in ("undefined", "idna", "punycode")
    except LookupError:
        return False


def declarations(folder: Path) -> Iterator[Case]:
    """html5lib's encodings: a page is read as the encoding that its prescan finds."""
    for path in sorted((folder / "encoding").glob("*.dat")):
        for number, part in enumerate(path.read_bytes().split(b"#data\n")[1:]):
            body, _, name = part.partition(b"\n#encoding\n")
            codec = name.split(b"\n")[0].strip().decode().lower()
            if not _codec(codec):
                continue
            try:
                seen = decode(body, {"content-type": "text/html"})
            except FetchError as error:
                yield Case(f"{path.name} {number}", right=False, seen=error.reason)
                continue
            right = seen == body.decode(codec, "replace").lstrip("\ufeff")
            yield Case(f"{path.name} {number}", right, f"not as {codec}")


def pages(folder: Path) -> Iterator[Case]:
    """readability's pages: four fifths of the words of each are found and few others; the publish
    time is the same."""
    for path in sorted((folder / "test/test-pages").iterdir()):
        expected = path / "expected-metadata.json"
        if not expected.exists():
            continue
        given = json.loads(expected.read_text())
        html = (path / "source.html").read_text()
        wanted = _words((path / "expected.html").read_text())
        try:
            article = extract(html, "https://h.example/a", "UTC")
        except FetchError as error:
            yield Case(path.name, right=False, seen=error.reason)
            continue
        both = (wanted & Counter(article.text.lower().split())).total()
        score = 2 * both / max(wanted.total() + len(article.text.split()), 1)
        yield Case(path.name, score >= 0.8, f"F1 {score:.2f}")
        when = parse_time(given.get("publishedTime") or "")
        if when is not None:
            yield Case(f"{path.name} time", article.published_at == when, str(article.published_at))


def _words(html: str) -> Counter[str]:
    from lxml.html import document_fromstring

    return Counter(document_fromstring(html).text_content().lower().split())


def articles(folder: Path) -> Iterator[Case]:
    """The pages of article-extraction-benchmark: F1 of four-word shingles is .8 or more."""
    import gzip

    truth = json.loads((folder / "ground-truth.json").read_text())
    for name, given in truth.items():
        packed = folder / "html" / f"{name}.html.gz"
        if not packed.exists():
            continue
        try:
            page = gzip.decompress(packed.read_bytes()).decode("utf-8", "replace")
            text = extract(page, given.get("url") or "https://h.example/a", "UTC").text
        except (FetchError, OSError):
            text = ""
        right, seen = _shingles(given.get("articleBody", "")), _shingles(text)
        both = (right & seen).total()
        score = 2 * both / max(right.total() + seen.total(), 1)
        counts = (both, seen.total() - both, right.total() - both)
        yield Case(name[:12], score >= 0.8, f"F1 {score:.2f}", counts)


def f1_of(counts: Sequence[tuple[int, int, int]]) -> float:
    """F1 of the mean precision and the mean recall of the pages, as their evaluate.py has it."""
    precision = mean(right / (right + more) if right else 0.0 for right, more, _ in counts)
    recall = mean(right / (right + less) if right else 0.0 for right, _, less in counts)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _shingles(text: str, n: int = 4) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return Counter(tuple(words[at : at + n]) for at in range(max(len(words) - n + 1, 1)))


def dates(folder: Path) -> Iterator[Case]:
    """htmldate's pages: the day (UTC) on which each was published.

    What is another day in UTC and has a clock is named so where the page itself names the day that
    is wanted and the day is right in some zone, and so is a page whose own metadata says that it
    was changed on that day.
    """
    from trafilatura import load_html

    given: dict[str, Any] = {}
    for name in ("eval_default.json", "eval_mediacloud_2020.json"):
        given |= json.loads((folder / "tests" / name).read_text())
    for url, case in given.items():
        path = next(
            (file for kind in ("test_set", "cache", "eval")
             if (file := folder / "tests" / kind / case["file"]).is_file()),
            None,
        )  # fmt: skip
        if path is None or not isinstance(case["date"], str):
            continue
        page = decode(path.read_bytes(), {"content-type": "text/html"})
        tree = load_html(page)
        if tree is None:
            continue
        seen = published(tree, blocks(tree), url, "UTC")
        wanted = date.fromisoformat(case["date"])
        right = seen.at is not None and seen.at.date() == wanted
        kind = _kind(seen.at, wanted, _day_in_full(wanted).search(f"{url} {page}") is not None)
        if kind == "other" and wanted in _changed(tree):
            kind = "the day of its change"
        yield Case(f"{case['file']}: {kind}", right, seen.origin)


def _changed(tree: Any) -> set[date]:
    """The days on which a page's metadata says that it was changed."""
    named = (
        meta.get("content")
        for meta in tree.xpath("//meta[@content]")
        if re.search(r"modified|updated_time|lastmod", " ".join(meta.attrib.values()).lower())
    )
    described = (item.get("dateModified") for block in blocks(tree) for item in objects(block))
    times = (parse_time(value, day_first=True) for value in (*named, *described))
    return {when.date() for when in times if when is not None}


def _kind(seen: datetime | None, wanted: date, named: bool) -> str:
    """How a time differs from a day, which the page names or does not."""
    if seen is None:
        return "none"
    east, west = seen + timedelta(hours=14), seen - timedelta(hours=12)
    near = seen.time() != time() and wanted in (east.date(), west.date())
    return "the day in another zone" if near and named else "other"


SUITES: dict[str, tuple[str, Callable[[Path], Iterator[Case]]]] = {
    "feeds": ("feedparser", feeds),
    "times": ("feedparser", times),
    "robots.txt": ("robotstxt", robots),
    "archives": ("warcio", archives),
    "tables": ("csv-spectrum", tables),
    "encodings": ("chardet", encodings),
    "declared encodings": ("html5lib-tests", declarations),
    "pages": ("readability", pages),
    "articles": ("article-extraction-benchmark", articles),
    "publication dates": ("htmldate", dates),
}
REASONS = (
    ("times", "-0312|031231|-03-12|03335|'2003'", "two digits of a year and a month name no day"),
    ("times", "Ιούλ|július", "month names are read in English and Korean"),
    ("times", "0100", "years before 1990 are taken for nonsense"),
    ("times", "1:2:3:4|zz|xx|extra|-01'", "the day is right; what is behind it is not read"),
    ("robots.txt", "", "paths are compared percent-decoded (RFC 9309, 2.2.2), Google's as written"),
    ("tables", "location_coordinates", "an empty column and quotes around spaces are trimmed"),
    ("encodings", "(?i)euc-tw|ibm|mac|iso-2022-jp|tis|johab", "not written on the web of today"),
    ("encodings", "", "encodings of one alphabet differ by few letters; --encoding names it"),
    ("declared encodings", "", "valid UTF-8 counts before what is declared: pages lie"),
    ("pages", " time$", "of several times of publication the page's meta element goes first"),
    ("pages", "", "readability keeps other parts of these; trafilatura decides for ours"),
    ("articles", "", "trafilatura's own limits"),
    (
        "publication dates",
        ": the day in another zone",
        "in UTC a time near midnight is another day",
    ),
    (
        "publication dates",
        ": the day of its change",
        "the page says that it was published on our day, and changed on the one that is wanted",
    ),
    ("publication dates", ": none", "no date that a reader would believe: unknown, counted so"),
    (
        "publication dates",
        "",
        "the page names another day, or ours is a guess (`guess`), which is counted as one",
    ),
)
"""Why ours differs: suite, pattern of the name of a case, reason. The first that fits counts."""


def reason_of(suite: str, case: Case) -> str:
    return next(
        (why for name, what, why in REASONS if name == suite and re.search(what, case.name)), ""
    )


def run(folder: Path, results: Path) -> dict[str, Any]:
    """Measure what is there; write a dated file and print its table."""
    warnings.simplefilter("ignore")
    report: dict[str, Any] = {**facts("conformance", PACKAGES), "suites": {}}
    for name, (project, suite) in SUITES.items():
        if not (folder / project).is_dir():
            print(f"{name}: {project} is not in {folder}; skipped.", file=sys.stderr)
            continue
        cases = list(suite(folder / project))
        wrong = [case for case in cases if not case.right]
        report["suites"][name] = {
            "project": project,
            "right": len(cases) - len(wrong),
            "of": len(cases),
            "differences": [
                [wrong_case.name, wrong_case.seen, reason_of(name, wrong_case)]
                for wrong_case in wrong
            ],
        }
        if counts := [case.shingles for case in cases if case.shingles]:
            report["suites"][name]["f1"] = round(f1_of(counts), 4)
        print(f"{name}: {len(cases) - len(wrong)} of {len(cases)}", file=sys.stderr)
    keep_and_print(report, table(report), results=results)
    return report


def table(report: dict[str, Any]) -> str:
    lines = [
        f"# Public test sets through ours, {report['when'][:10]}",
        "",
        "| what | project | right | of |",
        "|---|---|---|---|",
        *(
            f"| {name} | {suite['project']} | {suite['right']} | {suite['of']} |"
            for name, suite in report["suites"].items()
        ),
        *(
            f"| {name}, mean F1 | {suite['project']} | {suite['f1']:.3f} | 1 |"
            for name, suite in report["suites"].items()
            if "f1" in suite
        ),
        "",
    ]
    for name, suite in report["suites"].items():
        grouped: dict[str, list[str]] = {}
        for case, seen, why in suite["differences"]:
            grouped.setdefault(why or "not explained", []).append(f"{case} ({seen})")
        for why, cases in grouped.items():
            shown = ", ".join(cases[:12]) + (f" and {len(cases) - 12} more" if cases[12:] else "")
            lines.append(f"- {name}, {len(cases)}: {why}. {shown}")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="folder", type=Path, required=True)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(lambda: run(given.folder, given.results))


if __name__ == "__main__":
    sys.exit(main())
