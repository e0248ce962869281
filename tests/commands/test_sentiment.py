"""`yeoron trends axis WORD` with nothing set: sentiment of English or of Korean alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

GOOD, BAD, ABOUT = "good", "bad", "about"
ENGLISH = {
    GOOD: ["good", "great", "love", "happy", "excellent", "enjoy", "nice"],
    BAD: ["bad", "terrible", "hate", "awful", "sad", "danger", "worst"],
    "plain": ["town", "people", "today", "week", "street", "saw", "came", "many", "other", "first"],
    "loved": "park library",
    "feared": "flood smog",
}
KOREAN = {
    GOOD: ["좋다", "최고", "만족", "감동", "행복", "희망", "사랑"],
    BAD: ["최악", "실망", "분노", "불안", "위험", "고통", "비난"],
    "plain": ["동네", "사람", "오늘", "이번주", "거리", "시장", "주민", "여럿", "다른", "처음"],
    "loved": "공원 도서관",
    "feared": "홍수 매연",
}


def write(path: Path, words: dict, language: str) -> Path:
    """Two months of posts: each about one thing, in words of one tone."""
    random = np.random.default_rng(7)
    lines = []
    for month in ("01", "02"):
        for at in range(900):
            tone, things = [(GOOD, words["loved"]), (BAD, words["feared"])][at % 2]
            said = [
                *random.choice(words[tone], 4),
                *random.choice(words["plain"], 4),
                random.choice(things.split()),
            ]
            random.shuffle(said)
            post = {"date": f"2020-{month}-{1 + at * 28 // 900:02}", "text": " ".join(said)}
            lines.append(json.dumps({**post, "language": language}, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("words", "language"), [(ENGLISH, "en"), (KOREAN, "ko")])
def test_what_is_loved_is_positive_and_what_is_feared_negative(
    process, tmp_path: Path, words: dict, language: str
) -> None:
    corpus, store = write(tmp_path / "posts.jsonl", words, language), tmp_path / "store"
    done = process(
        *("train", corpus, "--dated", "--window", "month", "--out", store),
        *("--dim", 24, "--min-count", 2, "--json"),
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    for kind, sign in (("loved", 1), ("feared", -1)):
        for word in words[kind].split():
            asked = ("trends", "axis", word, "--snapshots", store, "--json")
            done = process(*asked, cwd=tmp_path)
            assert done.code == 0, done.err
            (axis,) = json.loads(done.out)
            assert {"good", "좋다"} <= {*axis["positive"]}
            for point in axis["points"]:
                assert sign * point["position"] > 0.3, (word, point)
                assert sign * point["low"] > 0 < sign * point["high"], (word, point)
            assert len({point["label"] for point in axis["points"]}) == 2
