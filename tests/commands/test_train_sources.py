"""`yeoron train --dated` on posts that name their sources, and what is asked of its snapshots."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from calling import sentences

from embedding.snapshots.store import SnapshotStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NEWS, BOARD = "뉴스 (온라인)", "게시판"
ODD = "배"
"""The news uses it among the words of one topic, the board among those of another."""
TOPIC = {NEWS: "t1", BOARD: "t2"}
OPTIONS = ("--dated", "--window", "month", "--dim", "32", "--sample", "0", "--json")


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough that it shows how two sources use a word."""
    return written(tmp_path_factory.mktemp("posts") / "posts.jsonl", 60_000)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `posts`, a tenth of them: enough to count."""
    return written(tmp_path_factory.mktemp("few") / "posts.jsonl", 6_000)


def written(path: Path, size: int) -> Path:
    """Three months of two large sources, a small one that is read in January alone, and posts that
    name none in March."""
    dice = random.Random(5)
    with path.open("w", encoding="utf-8") as file:
        for month in (1, 2, 3):
            texts = sentences(size, seed=month).split("\n")[:-1]
            for at, text in enumerate(texts):
                source: str | None = dice.choice([NEWS, BOARD])
                if month != 2 and at % 100 == 7:
                    source = "가끔" if month == 1 else None
                text += f" month{month}"
                if source in TOPIC and text.startswith(TOPIC[source]):
                    words = text.split()
                    words[dice.randrange(9)] = ODD
                    text = " ".join(words)
                day = 1 + at * 28 // len(texts)
                line = {"date": f"2020-{month:02}-{day:02}", "text": text, "source": source}
                file.write(json.dumps(line) + "\n")
    return path


def read(path: Path, month: int) -> dict[str, Counter[str]]:
    """Words by source."""
    found: dict[str, Counter[str]] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if int(line["date"][5:7]) == month:
            words = found.setdefault(line["source"] or "corpus", Counter())
            words.update(line["text"].split())
    return found


def digest(store: Path) -> list[str]:
    files = sorted(store.glob("*/*.arrow"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def test_a_word_that_two_sources_use_differently_is_found(
    process, posts: Path, tmp_path: Path
) -> None:
    done = process("train", posts, "--out", tmp_path / "store", *OPTIONS)
    assert done.code == 0, done.err
    assert json.loads(done.out)["late_documents"] == 0

    store = SnapshotStore(tmp_path / "store")
    found = [store.open(ref.id) for ref in store.list()]
    assert [shot.ref.window_start.month for shot in found] == [1, 2, 3]
    for month, shot in enumerate(found, start=1):
        counts, words = shot.by_source, read(posts, month)
        rows = zip(counts.sources, counts.words, counts.counts.tolist(), strict=True)
        held = {(source, word): n for source, word, n in rows}
        assert held == {(s, w): n for s, each in words.items() for w, n in each.items()}
        assert shot.manifest.tokens == {source: each.total() for source, each in words.items()}
        # Cut as the posts went on to the next month, though a source was silent since.
        assert (shot.index("month3") is not None) == (month == 3)
        assert {f"nll.{source}" for source in words} <= set(shot.manifest.quality)

    asked = ("--snapshots", tmp_path / "store", "--json")
    done = process("trends", "contrast", NEWS, BOARD, *asked)
    assert done.code == 0, done.err
    first, *others = json.loads(done.out)["rows"]
    assert first["word"] == ODD
    assert first["significant"]
    # Words that it stands among in one of both sources have other contexts there, too.
    assert {row["word"][:2] for row in others if row["significant"]} <= set(TOPIC.values())
    for side, source in (("first", NEWS), ("second", BOARD)):
        near = [one["word"] for one in first[f"neighbours_{side}"]]
        assert sum(word.startswith(TOPIC[source]) for word in near) > len(near) / 2

    done = process("trends", "bias", *asked)
    assert done.code == 0, done.err
    assert {each["source"] for each in json.loads(done.out)["sources"]} == {NEWS, BOARD, "corpus"}


def test_the_same_posts_give_the_same_bytes(process, few: Path, tmp_path: Path) -> None:
    for name in ("store", "again"):
        done = process("train", few, "--out", tmp_path / name, *OPTIONS)
        assert done.code == 0, done.err
    assert digest(tmp_path / "store") == digest(tmp_path / "again") != []


def test_sources_beyond_the_most_are_counted_as_one(own_process, few: Path, tmp_path: Path) -> None:
    done = own_process("train", few, "--out", tmp_path / "some", "--sources", "1", *OPTIONS)
    assert done.code == 0, done.err
    assert "3 sources; the 1 with the most text are told apart" in done.err
    latest, words = SnapshotStore(tmp_path / "some").open(), read(few, 3)
    assert set(latest.manifest.tokens) & {NEWS, BOARD} == set(latest.manifest.tokens) - {
        "other",
        "corpus",
    }
    assert sum(latest.manifest.tokens.values()) == sum(each.total() for each in words.values())
    assert latest.manifest.tokens["corpus"] == words["corpus"].total()


def test_as_one_source_it_is_learnt_as_if_no_line_named_any(
    process, few: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.jsonl"
    with bare.open("w", encoding="utf-8") as file:
        for text in few.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            del line["source"]
            file.write(json.dumps(line) + "\n")
    for corpus, name in ((few, "one"), (bare, "bare")):
        done = process("train", corpus, "--out", tmp_path / name, "--sources", "0", *OPTIONS)
        assert done.code == 0, done.err
    assert digest(tmp_path / "one") == digest(tmp_path / "bare") != []
    assert set(SnapshotStore(tmp_path / "one").open().manifest.tokens) == {"corpus"}
