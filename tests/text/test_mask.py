from __future__ import annotations

import re
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from personal import KINDS, decoys, personal

from embedding.text import mask, normalise
from embedding.text.neutral import NEUTRAL

SEED, COUNT = 20200203, 6_000


def traces(text: str) -> set[str]:
    """Runs of four or more digits, and Latin or Hangul names after an @ or before one."""
    return set(re.findall(r"[0-9]{4,}|[0-9]{3}-|[\w.]+(?=@)|(?<=@)[\w.]+", text))


def test_recall_and_precision_on_the_generated_set() -> None:
    found, missed = Counter[str](), Counter[str]()
    examples: list[str] = []
    for kind, text, piece in personal(SEED, COUNT):
        clean = normalise(text)
        result = mask(clean)
        # The piece is gone if none of it is left: what stays is the frame and neutral tokens.
        survived = traces(normalise(piece)) & traces(NEUTRAL.sub(" ", result.text))
        if result.counts and not survived and normalise(piece) not in result.text:
            found[kind] += 1
        else:
            missed[kind] += 1
            examples.append(f"{kind}: {clean!r} → {result.text!r}")
    wrong = [
        (clean, result.text)
        for clean in map(normalise, decoys(SEED, COUNT))
        if (result := mask(clean)).counts
    ]
    recall = found.total() / COUNT
    precision = found.total() / (found.total() + len(wrong))
    assert recall >= 0.99, (recall, missed, examples[:20])
    assert precision >= 0.95, (precision, wrong[:20])
    for kind in KINDS:
        assert found[kind] / (found[kind] + missed[kind]) >= 0.98, (kind, examples[:20])


def test_masking_twice_changes_nothing() -> None:
    for _, text, _ in personal(7, 500):
        once = mask(normalise(text)).text
        assert mask(once).text == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("주민번호 900101-1234567 입니다", "주민번호 <resident> 입니다"),
        ("외국인등록번호 900101-5234567", "외국인등록번호 <resident>"),
        ("９００１０１－１２３４５６７", "<resident>"),
        ("900101-1******", "<resident>"),
        ("010-1234-5678로 전화", "<phone> 전화"),
        ("01012345678", "<phone>"),
        ("전화 02)123-4567", "전화 <phone>"),
        ("+82 10 1234 5678", "<phone>"),
        ("공일공 일이삼사 오육칠팔", "<phone>"),
        ("O1O-1234-5678", "<phone>"),
        ("4000-1234-5678-9010 카드", "<card> 카드"),
        ("국민은행 123456-78-901234 홍씨", "국민은행 <account> 홍씨"),
        ("신한 110123456789", "신한 <account>"),
        ("a.b+c@naver.com으로", "<email>"),
        ("@홍길동 보세요", "<handle> 보세요"),
        ("카톡 아이디: hong1234 추가", "카톡 아이디: <handle> 추가"),
        ("https://a.example/user/010-1234-5678?q=가나다", "<url> 가나다"),
    ],
)
def test_one_of_each(text: str, expected: str) -> None:
    assert " ".join(mask(normalise(text)).text.split()) == expected


def test_the_check_digit_does_not_matter() -> None:
    for last in range(10):
        assert mask(f"900101-123456{last}").counts == {"resident": 1}


def test_counts_by_kind() -> None:
    text = "010-1234-5678, 010-2345-6789 그리고 a@b.kr"
    assert mask(text).counts == {"phone": 2, "email": 1}


@given(st.text(alphabet="0123456789-@. 가a/()+*\n", max_size=200))
def test_any_text_is_masked_without_an_error(text: str) -> None:
    result = mask(text)
    assert bool(result.counts) == (result.text != text)


@pytest.mark.parametrize("piece", ["0", "1-", "a", "a@", "010-", "www.", "12 ", "+1 ", "@", "은행"])
def test_long_repetitions_are_quick(piece: str) -> None:
    started = time.process_time()
    mask(piece * 20_000)
    assert time.process_time() - started < 3.0
