"""Phrases in dated documents: which are found and when, are they born, what do they cost?

    python -m benchmarks phrases petitions.jsonl.xz 우한폐렴=2020-02 공적마스크=2020-03 \
        --sample 100 --keep passages.pickle

Documents become words as `yeoron train --dated` makes them, tick by tick in order of time, and each
month's counts become a snapshot (without vectors: births are judged by counts alone). For each
WORD=MONTH: when the phrase was found, in which window it was born, how sure that is, and whether
its parts are listed beside it as born or risen. The peer is word2phrase (Mikolov et al. 2013) as
gensim's Phrases, by its own score and by NPMI, on the same words up to the end of that month.
--null assigns the documents to the months by chance so many times: every birth called is then
false. --sample prints phrases chosen by chance, to be judged by a reader. --keep stores the
passages that Kiwi made, so that a second call needs no Kiwi; that file holds the text and is no
result.
"""

from __future__ import annotations

import json
import pickle
import random
import re
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from benchmarks.months import Bare
from embedding.kernel.errors import InputError
from embedding.kernel.records import Calendar, Phrase, SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore
from embedding.text.config import TextConfig
from embedding.text.kiwi import KiwiTokenizer
from embedding.text.mask import mask
from embedding.text.normalise import normalise
from embedding.text.passages import Passage, split_sentences
from embedding.text.phrases import Phrases
from embedding.trends.arrivals import FrequencyRankings, rank_arrivals
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import with_copies_once
from embedding.trends.material import gather
from embedding.worker.spec import CorpusShare
from yeoron_bench.datedlines import dated_lines
from yeoron_bench.results import ended, facts, keep

PACKAGES = ("yeoron", "numpy", "kiwipiepy", "gensim")
TICK = 25_000
"""Words of a tick, as `yeoron train` cuts them."""
MIN_COUNT = 5
ALL = TrendsConfig(rows=10_000)
PEERS: dict[str, dict[str, Any]] = {
    "gensim default": {},
    "gensim NPMI 0.3": {"scoring": "npmi", "threshold": 0.3},
    "gensim NPMI 0.5": {"scoring": "npmi", "threshold": 0.5},
}


@dataclass(frozen=True)
class Text:
    """One document as Kiwi read it."""

    when: float
    source: str
    passages: list[Passage]


@dataclass
class Month:
    """What one window holds: occurrences and documents by word and source."""

    window: Window
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    documents: Counter[tuple[str, str]] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    phrases: tuple[Phrase, ...] = ()


@dataclass(frozen=True)
class Cost:
    """Processor seconds, and what they were for."""

    seconds: float
    tokens: int

    @property
    def per_million(self) -> float:
        return round(1e6 * self.seconds / max(self.tokens, 1), 2)


def texts(path: Path, config: TextConfig) -> tuple[list[Text], Cost]:
    """All documents through Kiwi."""
    kiwi = KiwiTokenizer(config)
    kiwi.tokenize(["준비되었습니다."])
    windows, began = [], time.process_time()
    for line in dated_lines(CorpusShare(path=str(path))):
        clean = mask(normalise(line.text)).text
        passages = [each for each in kiwi.passages(split_sentences(clean)) if each.words]
        windows.append(Text(line.when, line.source or "corpus", passages))
    words = sum(len(p.words) for text in windows for p in text.passages)
    return windows, Cost(time.process_time() - began, words)


def ticks(documents: Sequence[Text]) -> Iterator[list[Text]]:
    """Documents in order of time: about TICK words, none of two months."""
    batch: list[Text] = []
    words = 0
    for text in documents:
        month = Calendar(WindowUnit.MONTH).start(text.when)
        if batch and (words >= TICK or Calendar(WindowUnit.MONTH).start(batch[-1].when) != month):
            yield batch
            batch, words = [], 0
        batch.append(text)
        words += sum(len(passage.words) for passage in text.passages)
    if batch:
        yield batch


def read(documents: Sequence[Text], config: TextConfig) -> tuple[list[Month], Cost, int]:
    """The months, what the step of phrases cost, and the bytes it holds at the end."""
    phrases = Phrases(config)
    months: dict[float, Month] = {}
    by_word: dict[str, Phrase] = {}
    seconds, tokens, number = 0.0, 0, 0
    for tick in ticks(documents):
        whose = np.arange(number, number + len(tick), dtype=np.int64) * 0x9E3779B97F4A7C1
        began = time.process_time()
        words, fresh = phrases.read([t.passages for t in tick], whose, [t.when for t in tick])
        seconds += time.process_time() - began
        number += len(tick)
        for phrase in fresh:
            known = by_word.get(phrase.word)
            by_word[phrase.word] = phrase if known is None else known.merged(phrase)
        start = Calendar(WindowUnit.MONTH).start(tick[0].when)
        window = Window.holding(datetime.fromtimestamp(start, UTC), WindowUnit.MONTH)
        month = months.setdefault(start, Month(window))
        for text, sentences in zip(tick, words, strict=True):
            counts = Counter(word for sentence in sentences for word in sentence)
            month.read[text.source] += 1
            month.tokens[text.source] += counts.total()
            tokens += counts.total()
            for word, n in counts.items():
                month.counts[word, text.source] += n
                month.documents[word, text.source] += 1
        month.phrases = tuple(by_word.values())
    return [months[start] for start in sorted(months)], Cost(seconds, tokens), phrases.memory


def publish(months: Sequence[Month], folder: str) -> SnapshotStore:
    """A snapshot for each month, as the server cuts them but for the vectors."""
    store, parent = SnapshotStore(folder), None
    running: Counter[str] = Counter()
    rows: dict[str, int] = {}
    for month in months:
        for (word, _), n in month.counts.items():
            running[word] += n
        for word, n in running.items():
            if n >= MIN_COUNT:
                rows.setdefault(word, len(rows))
        keys = [key for key in month.counts if key[0] in rows]
        start = int(month.window.start.timestamp())
        vectors = np.zeros((len(rows), 2), np.float32)
        by_source = WordCounts(
            [word for word, _ in keys],
            [source for _, source in keys],
            np.full(len(keys), start),
            np.array([month.counts[key] for key in keys], np.int64),
            np.array([month.documents[key] for key in keys], np.int64),
        )
        data = SnapshotData(
            month.window,
            list(rows),
            np.arange(len(rows), dtype=np.int64),
            np.array([running[word] for word in rows], np.int64),
            np.full(len(rows), float(start)),
            vectors,
            vectors,
            by_source,
            dict(month.tokens),
            dict(month.read),
            parent=parent,
            config={"server": {"min_count": MIN_COUNT}},
            phrases=[phrase for phrase in month.phrases if phrase.word in rows],
        )
        parent = store.publish(data).id
    return store


def arrivals(store: SnapshotStore, id: str) -> FrequencyRankings | None:
    material = gather(store, id)
    if not material.earlier:
        return None
    once = with_copies_once(material, ALL.baseline_windows)
    return rank_arrivals(material, once, Bare(material, once, ALL), ALL)


def judged(store: SnapshotStore, asked: dict[str, str]) -> tuple[list[dict[str, Any]], Any]:
    """What the windows say of the phrases asked for; by window, what else was born for sure."""
    rows: dict[str, dict[str, Any]] = {word: {"word": word} for word in asked}
    others: dict[str, Any] = {}
    for ref in store.list():
        came = arrivals(store, ref.id)
        label, phrases = ref.id.rpartition("-")[0], store.open(ref.id).phrases
        if came is None:
            continue
        sure = [row.word for row in came.born if row.significant]
        risen = [row.word for row in came.risen if row.significant]
        for at, row in enumerate(came.born, 1):
            if row.word not in rows:
                continue
            parts = phrases[row.word].parts if row.word in phrases else ()
            rows[row.word] |= {
                "born": label,
                "rank": at,
                "documents": row.documents,
                "earlier": phrases[row.word].earlier if parts else 0,
                "q": float(f"{row.q:.2g}"),
                "sure": row.significant,
                "parts": list(parts),
                "parts_born": [part for part in parts if part in sure],
                "parts_risen": [part for part in parts if part in risen],
            }
        if label in asked.values():
            others[label] = {
                "born": len(sure),
                "phrases": sum(word in phrases for word in sure),
                "risen": len(risen),
                "first": sure[:40],
            }
    return list(rows.values()), others


def null(documents: Sequence[Text], config: TextConfig, times: int) -> dict[str, Any]:
    """Births called where the documents were assigned to the months by chance."""
    windows, calls = 0, []
    for seed in range(times):
        when = [text.when for text in documents]
        shuffled = list(documents)
        random.Random(seed).shuffle(shuffled)
        moved = [replace(text, when=at) for text, at in zip(shuffled, when, strict=True)]
        with tempfile.TemporaryDirectory() as folder:
            store = publish(read(moved, config)[0], folder)
            for ref in store.list():
                came = arrivals(store, ref.id)
                if came is not None:
                    windows += 1
                    calls.append([row.word for row in came.born if row.significant])
    false = [words for words in calls if words]
    return {"windows": windows, "with_a_call": len(false), "calls": sum(map(len, false))}


def peers(documents: Sequence[Text], asked: dict[str, str], parts: dict[str, list[str]]) -> Any:
    """gensim's Phrases on the same words, twice, so that phrases may have up to four parts."""
    from gensim.models.phrases import Phrases as Peer

    answers = []
    for name, options in PEERS.items():
        answer: dict[str, Any] = {"name": name, "found": {}}
        for month in sorted(set(asked.values())):
            sentences = [
                passage.words
                for text in documents
                if f"{datetime.fromtimestamp(text.when, UTC):%Y-%m}" <= month
                for passage in text.passages
            ]
            began = time.process_time()
            once = Peer(sentences, min_count=5, delimiter=" ", **options)
            twice = Peer(once[sentences], min_count=5, delimiter=" ", **options)
            spent = time.process_time() - began
            words = sum(map(len, sentences))
            known = set(once.export_phrases()) | set(twice.export_phrases())
            for word, when in asked.items():
                if when == month:
                    answer["found"][word] = " ".join(parts[word]) in known
        answer |= {"phrases": len(known), "s_per_million": Cost(spent, words).per_million}
        answer["sample"] = random.Random(5).sample(sorted(known), min(100, len(known)))
        answers.append(answer)
    return answers


def expected(words: Sequence[str]) -> dict[str, str]:
    born = {}
    for name in words:
        word, _, month = name.partition("=")
        if not re.fullmatch(r"\d{4}-\d\d", month) or not word:
            raise InputError(f"{name!r}: WORD=YYYY-MM is accepted.")
        born[word] = month
    return born


def measure(given: Namespace) -> None:
    asked = expected(given.words)
    config = TextConfig(tokenizer="kiwi", new_words=0, **json.loads(given.set))
    report = facts("phrases", PACKAGES)
    if given.keep is not None and given.keep.exists():
        documents, kiwi = pickle.loads(given.keep.read_bytes())
    else:
        documents, kiwi = texts(given.corpus, config)
        if given.keep is not None:
            given.keep.write_bytes(pickle.dumps((documents, kiwi)))
    months, step, memory = read(documents, config)
    by_word = {phrase.word: phrase for phrase in months[-1].phrases}
    with tempfile.TemporaryDirectory() as folder:
        words, others = judged(publish(months, folder), asked)
    report |= {
        "config": {"corpus": given.corpus.name, **config.model_dump(mode="json")},
        "documents": len(documents),
        "kiwi_s_per_million": kiwi.per_million,
        "step_s_per_million": step.per_million,
        "share": round(step.seconds / kiwi.seconds, 4),
        "step_mb": round(memory / 1e6, 1),
        "phrases": len(by_word),
        "words": words,
        "windows": others,
        "sample": [
            [word, list(by_word[word].parts)]
            for word in random.Random(5).sample(sorted(by_word), min(given.sample, len(by_word)))
        ],
    }
    if given.null:
        plain = config.model_copy(update={"phrases": 0, "phrase_voices": 100, "phrase_npmi": 1.0})
        report["null"] = {
            "with phrases": null(documents, config, given.null),
            "without": null(documents, plain, given.null),
        }
    if not given.no_peers:
        parts = {word: list(by_word[word].parts) if word in by_word else [word] for word in asked}
        report["peers"] = peers(documents, asked, parts)
    path = keep(report, table(report), results=RESULTS)
    print(table(report))
    print(f"Written to {path}.")


def table(report: dict[str, Any]) -> str:
    """The report for readers."""
    lines = ["# Phrases", "", f"`python -m benchmarks phrases {report['config']['corpus']}`", ""]
    lines += [f"Hardware: {report['hardware']}", "", f"Versions: {report['versions']}", ""]
    columns = ("phrase", "born", "rank", "documents", "not counted", "q", "sure", "parts born")
    lines += [_costs(report), "", f"| {' | '.join(columns)} | parts risen |", "|---" * 9 + "|"]
    for row in report["words"]:
        cells = [row.get(n, "–") for n in ("word", "born", "rank", "documents", "earlier", "q")]
        cells += ["yes" if row.get("sure") else "no"]
        cells += [" ".join(row.get(name, [])) or "–" for name in ("parts_born", "parts_risen")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    for label, window in report["windows"].items():
        lines += [
            "",
            f"{label}: {window['born']} born for sure, {window['phrases']} of them phrases; ",
        ]
        lines[-1] += f"{window['risen']} risen for sure. First: {' '.join(window['first'])}"
    for name, window in report.get("null", {}).items():
        lines += ["", f"Documents assigned by chance, {name}: {window['calls']} births called, in "]
        lines[-1] += f"{window['with_a_call']} of {window['windows']} windows."
    for peer in report.get("peers", []):
        hits = " ".join(word for word, hit in peer["found"].items() if hit) or "none"
        lines += ["", f"{peer['name']}: {peer['phrases']:,} phrases, {peer['s_per_million']} s a "]
        lines[-1] += f"million words; of those asked for: {hits}."
    sample = [f"{word} ({' '.join(parts)})" for word, parts in report["sample"]]
    lines += ["", "## Chosen by chance", "", ", ".join(sample), ""]
    for peer in report.get("peers", []):
        lines += [f"{peer['name']}: " + ", ".join(peer["sample"]), ""]
    return "\n".join(lines)


def _costs(report: dict[str, Any]) -> str:
    line = f"{report['documents']:,} documents, {report['phrases']:,} phrases."
    kiwi, step = report["kiwi_s_per_million"], report["step_s_per_million"]
    costs = f"Kiwi {kiwi} s and the step of phrases {step} s a million words"
    return f"{line} {costs} ({report['share']:.1%} of Kiwi), {report['step_mb']} MB."


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="dated JSONL, plain or .xz")
    parser.add_argument("words", nargs="*", metavar="WORD=MONTH")
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--null", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="file for what Kiwi made of the corpus")
    parser.add_argument("--set", default="{}", help="settings of the text room, as JSON")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args(arguments)
    return ended(lambda: measure(given))


if __name__ == "__main__":
    sys.exit(main())
