"""Plain text is cut into the same words as the pipeline cuts it, only quicker."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embedding.text.config import TextConfig
from embedding.text.normalise import normalise
from embedding.text.plain import code_lines

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
    config = TextConfig(tokenizer="whitespace", mask=False, run_length=run_length, max_length=8)
    coded = code_lines(lines, config)
    words = [coded.words[code] for code in coded.codes]
    sentences = [
        words[first:last]
        for first, last in zip(coded.sentences[:-1], coded.sentences[1:], strict=True)
    ]
    assert sentences == expected(lines, config)
    assert len(set(coded.words)) == len(coded.words)


@pytest.mark.parametrize("character", [chr(code) for code in range(0x20)] + ["\x7f", "'", '"'])
def test_every_control_is_treated_as_the_normaliser_treats_it(character: str) -> None:
    config = TextConfig(tokenizer="whitespace", mask=False)
    coded = code_lines([f"a{character}b"], config)
    assert [[coded.words[c] for c in coded.codes]] == expected([f"a{character}b"], config)
