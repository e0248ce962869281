"""Plain text is cut into the same words as the pipeline cuts it, only quicker."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embedding.text.config import TextConfig
from embedding.text.normalise import normalise
from embedding.text.pipeline import TextPipeline
from embedding.text.plain import code_documents, code_lines

# What the quick way must tell from what `normalise` changes: runs of marks, blanks, controls,
# wide and half-width forms, lone letters, emoji.
ALPHABET = "ab.,!?~^; \t\r\x00\x85가나힣ㅋㅠ…♡１ﾡ👍🏽é\u200b\u3000-—"
LINES = st.lists(st.text(st.sampled_from(ALPHABET), max_size=12), max_size=6)


def expected(lines: list[str], config: TextConfig) -> list[list[str]]:
    found = []
    for line in lines:
        clean = normalise(line, run_length=config.run_length, emoji=config.emoji)
        words = [w for w in clean.split() if config.min_length <= len(w) <= config.max_length]
        if words:
            found.append(words)
    return found


@given(LINES, st.sampled_from([1, 2, 3]))
@example(["a,,,b 가,,,나"], 2)
@example(["a  b", " a ", ""], 2)
@example(["!!", "!!!"], 1)
def test_the_words_are_those_of_the_normaliser(lines: list[str], run_length: int) -> None:
    config = TextConfig(tokenizer="whitespace", mask=False).model_copy(
        update={"run_length": run_length, "max_length": 8}
    )
    coded = code_lines(lines, config)
    words = [coded.words[code] for code in coded.codes]
    sentences = [
        words[first:last]
        for first, last in zip(coded.sentences[:-1], coded.sentences[1:], strict=True)
    ]
    assert sentences == expected(lines, config)
    assert len(set(coded.words)) == len(coded.words)


ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30)
WORDY = st.text(st.sampled_from("가a 가a\u3000\t한글말1.!ㅋ"), min_size=30, max_size=80)


@given(
    st.lists(ANY | WORDY, max_size=5),
    st.sampled_from(["keep", "token", "drop"]),
    st.integers(1, 3),
    st.sampled_from([2, 5, 40, 100]),
)
@example(["가" * 41, "가" * 40, "a" * 61, "가" * 40 + " 나"], "keep", 1, 40)
@example(["👍🏽가", "\u200b", "\x1c \x85a\u2028b", "①２ﬁ"], "token", 1, 40)
def test_the_words_of_a_line_are_those_of_the_pipeline(
    lines: list[str], emoji: Literal["keep", "token", "drop"], least: int, most: int
) -> None:
    """Only sentences differ: a line is one, where the pipeline would cut at full stops as well."""
    config = TextConfig(
        tokenizer="whitespace", mask=False, emoji=emoji, min_length=least
    ).model_copy(update={"max_length": most})
    pipeline = TextPipeline(config)
    found = [[word for sentence in pipeline.words(line) for word in sentence] for line in lines]
    coded = code_lines(lines, config)
    words = [coded.words[code] for code in coded.codes]
    assert words == [word for line in found for word in line]
    ends = [0]
    for line in filter(None, found):
        ends.append(ends[-1] + len(line))
    assert coded.sentences.tolist() == ends
    assert coded.codes.dtype == coded.sentences.dtype == np.int32
    assert set(coded.codes.tolist()) == set(range(len(coded.words))), "no word without a token"


@pytest.mark.parametrize("character", [chr(code) for code in range(0x20)] + ["\x7f", "'", '"'])
def test_every_control_is_treated_as_the_normaliser_treats_it(character: str) -> None:
    config = TextConfig(tokenizer="whitespace", mask=False)
    coded = code_lines([f"a{character}b"], config)
    assert [[coded.words[c] for c in coded.codes]] == expected([f"a{character}b"], config)


PLAIN = TextPipeline(
    TextConfig(tokenizer="whitespace", mask=False).model_copy(update={"max_length": 5})
)


DOCUMENT = st.text(st.sampled_from("가나ㅋㅠab.!?\"') \n\t\u3000…é１\u200b😀"), max_size=20)


@given(st.lists(DOCUMENT, max_size=5))
def test_documents_have_the_words_that_the_pipeline_finds(texts: list[str]) -> None:
    config = TextConfig(tokenizer="whitespace", mask=False).model_copy(update={"max_length": 5})
    coded, documents = code_documents(pa.array(texts, pa.string()), config, PLAIN.words)
    words = [coded.words[code] for code in coded.codes.tolist()]
    ends = coded.sentences.tolist()
    sentences = [words[low:high] for low, high in pairwise(ends)]
    found = [sentences[low:high] for low, high in pairwise(documents.tolist())]
    assert found == [PLAIN.words(text) for text in texts]
