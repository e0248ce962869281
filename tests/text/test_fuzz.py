"""Any text through the whole room: no crash, nothing masked twice, no masked shape gets through."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import grammar
import grammar_other
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from embedding.kernel.records import Document, TokenBlock
from embedding.text.config import TextConfig
from embedding.text.mask import NEUTRAL, mask
from embedding.text.normalise import normalise
from embedding.text.pipeline import TextPipeline
from generated import examples

ANYTHING = st.text(st.characters(exclude_categories=[]), max_size=200)
KOREAN = st.text(
    "가나다라마바사 ㅋㅎㅠㅜ!?….,~^;0123456789０１２-–·@<>phone()a"
    "\u200b\ufeff\u00ad\u1100\u1161\u11a8👍🏽\n\t\x00",
    max_size=120,
)
QUIET = settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module", params=["auto", "script", "whitespace"])
def pipeline(request: pytest.FixtureRequest) -> TextPipeline:
    return TextPipeline(TextConfig(tokenizer=request.param))


@QUIET
@given(text=ANYTHING | KOREAN, title=KOREAN)
def test_any_text_becomes_a_block(
    pipeline: TextPipeline, document: Callable[..., Document], text: str, title: str
) -> None:
    block = pipeline.block([document(text, title=title)], [0.0])
    again = TokenBlock.from_buffer(block.to_buffer())
    assert again.words == block.words
    assert all(word.strip() == word and word for word in block.words)


@settings(max_examples=examples(300))
@given(ANYTHING | KOREAN, st.integers(1, 3), st.sampled_from(["keep", "token", "drop"]))
@example(text="0\r\x1f 0", run=1, emoji="keep")
@example(text="0\r\x1f\x850", run=1, emoji="keep")
@example(text="0\n🐀", run=1, emoji="token")
@example(text="0\n🐀\n0", run=1, emoji="drop")
def test_normalising_again_changes_nothing(text: str, run: int, emoji: str) -> None:
    once = normalise(text, run_length=run, emoji=emoji)  # type: ignore[arg-type]
    assert normalise(once, run_length=run, emoji=emoji) == once  # type: ignore[arg-type]


@settings(max_examples=examples(300))
@given(ANYTHING | KOREAN)
def test_masking_again_changes_nothing(text: str) -> None:
    once = mask(normalise(text)).text
    assert mask(once).text == once
    assert not mask(once).counts


@settings(max_examples=examples(200))
@given(
    st.integers(0, 10**6),
    st.text("가나다 라마.,!?ㅋㅠ\n\u200b", max_size=20),
    st.text(" .,!?ㅋㅠ\n은는이가", max_size=20),
)
def test_no_shape_gets_through_whatever_stands_around_it(
    seed: int, before: str, behind: str
) -> None:
    style = random.Random(seed).choice((grammar, grammar_other))
    ((kind, front, piece, back),) = style.positives(seed, 1)
    clean = mask(normalise(f"{before} {front}{piece}{back} {behind}")).text
    left = re.findall(r"[0-9]{3,}", NEUTRAL.sub(" ", clean))
    around = re.findall(r"[0-9]{3,}", normalise(f"{front} {back}"))
    assert not set(left) - set(around), (kind, piece, clean)


@pytest.mark.parametrize("style", [grammar, grammar_other])
def test_no_digit_of_personal_data_becomes_a_word(
    pipeline: TextPipeline, document: Callable[..., Document], style: object
) -> None:
    made = [
        (piece, document(front + piece + back, f"u{at}"))
        for at, (kind, front, piece, back) in enumerate(style.positives(5, 200))  # type: ignore[attr-defined]
        if kind in ("resident", "phone", "card")
    ]
    block = pipeline.block([each for _, each in made], [0.0] * len(made))
    told = {run for piece, _ in made for run in re.findall(r"[0-9]{4,}", normalise(piece))}
    assert not told & set(re.findall(r"[0-9]{4,}", " ".join(block.words)))
