"""Plain text that is cut into words already, one sentence a line, coded by Arrow's kernels.

The same words as `TextPipeline` gives for the whitespace tokenizer without masking, at some ten
times its speed, because no word is ever a Python string of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from embedding.kernel.records import CodeArray, IntArray
from embedding.text.config import TextConfig
from embedding.text.normalise import normalise

_MARKS = "!?~^;.,"
"""Printable ASCII that `normalise` cuts runs of."""
LETTERS = "".join(map(chr, range(ord("ㄱ"), ord("ㅣ") + 1)))
"""Hangul letters on their own (ㅋㅋ, ㅠㅠ), of which it does, too."""


@dataclass(frozen=True)
class PlainText:
    """Coded lines.

    words      distinct words
    codes      int32 [n], index into `words`
    sentences  int32 [m + 1], token offsets of the lines that hold a word
    """

    words: tuple[str, ...]
    codes: CodeArray
    sentences: CodeArray


def code_lines(lines: Sequence[str], config: TextConfig) -> PlainText:
    """Words of lines: normalised, cut at blanks; too short and too long ones are left out."""
    return _coded(split_lines(pa.array(lines, pa.string()), config), config)[0]


def _coded(split: pa.ListArray, config: TextConfig) -> tuple[PlainText, IntArray]:
    """Words of accepted length, coded; int64 [m + 1], token offsets of all lines."""
    coded = split.values.dictionary_encode()
    codes = coded.indices.to_numpy()
    offsets = split.offsets.to_numpy()
    fit = fitting(coded.dictionary, config)
    words = coded.dictionary
    if not fit.all():
        fits = fit[codes]
        offsets = np.concatenate(([0], np.cumsum(fits)))[offsets]
        renumbered = np.cumsum(fit) - 1
        codes, words = renumbered[codes[fits]], words.filter(pa.array(fit))
    text = PlainText(
        words=tuple(words.to_pylist()),
        codes=codes.astype(np.int32, copy=False),
        sentences=np.unique(offsets).astype(np.int32),
    )
    return text, offsets.astype(np.int64)


def code_documents(
    texts: pa.StringArray, config: TextConfig, words: Callable[[str], list[list[str]]]
) -> tuple[PlainText, CodeArray]:
    """Words of documents [n], as `TextPipeline` finds them with the whitespace tokenizer.

    words    sentences of words of one text: asked for those that `normalise` could change
    returns  the coded sentences, and int32 [n + 1], sentence offsets of the documents
    """
    odd = pc.match_substring_regex(texts, _odd(config.run_length, "\n"))
    if pc.any(odd).as_py():
        cut = ["\n".join(map(" ".join, words(text))) for text in texts.filter(odd).to_pylist()]
        texts = pc.replace_with_mask(texts, odd, pa.array(cut, pa.string()))
    if pc.any(pc.match_substring_regex(texts, _END)).as_py():
        texts = pc.replace_substring_regex(texts, _END, "\\1\n")
    split = pc.split_pattern(texts, "\n")
    coded, tokens = _coded(pc.ascii_split_whitespace(split.values), config)
    # Sentences without a word are left out, so each edge is counted once.
    edges = np.concatenate(([0], np.cumsum(np.diff(tokens) > 0)))
    return coded, edges[split.offsets.to_numpy()].astype(np.int32)


_END = r"([.!?][\"')\]]?) "
"""Where `split_sentences` ends one within a line of plain characters."""


def split_lines(lines: pa.StringArray, config: TextConfig) -> pa.ListArray:
    """Pieces of each line between blanks, normalised; outer blanks leave empty ones.

    Only lines that `normalise` could change are taken out of Arrow's memory for it.
    """
    odd = pc.match_substring_regex(lines, _odd(config.run_length))
    if pc.any(odd).as_py():
        clean = [
            normalise(line, run_length=config.run_length, emoji=config.emoji)
            for line in lines.filter(odd).to_pylist()
        ]
        lines = pc.replace_with_mask(lines, odd, pa.array(clean, pa.string()))
    return pc.ascii_split_whitespace(lines)


@cache
def _odd(run_length: int, also: str = "") -> str:
    """Matches what `normalise` could change, and anything but printable ASCII and Hangul.

    also  a character that is accepted, too
    """
    runs = "|".join(re.escape(mark) + f"{{{run_length + 1}}}" for mark in _MARKS + LETTERS)
    return rf"[^\x20-\x7e가-힣ㄱ-ㅎㅏ-ㅣ{also}]|  |{runs}"


def fitting(words: pa.Array, config: TextConfig) -> npt.NDArray[np.bool_]:
    """bool [W]: words of an accepted length. Splitting leaves an empty one for outer blanks."""
    lengths = pc.utf8_length(words).to_numpy()
    least = max(config.min_length, 1)
    fit: npt.NDArray[np.bool_] = (lengths >= least) & (lengths <= config.max_length)
    return fit
