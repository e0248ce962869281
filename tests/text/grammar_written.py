"""Personal data as people write it in comments, by hand, line by line; and innocent look-alikes.

The third style, written from the outside before the mask was looked at: separators borrowed from
the keyboard (ㅡ ~ _ / * · = :), numbers said in Hangul, dashes said aloud, letters in place of
digits, e-mail spelt out, accounts with the bank before, behind or two words away. In a line
`«piece»` is personal; `#` is a digit, `%` a digit said in Hangul, `$` a full-width digit.

`positives` yields (kind, text before, piece, text behind); `negatives` texts that have to stay.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from phrases import phrases

DATA = phrases("grammar_written")

PHONE = "\n".join(DATA["PHONE"])

RESIDENT = "\n".join(DATA["RESIDENT"])

CARD = """
카드번호 «4###-####-####-####»
«5### #### #### ####» 유효기간 12/24
카드 «4###############» 분실
«9###.####.####.####»
«4###ㅡ####ㅡ####ㅡ####» 정지요
«5###–####–####–####»
«$$$$－$$$$－$$$$－$$$$» 카드에요
아멕스 «37##-######-#####»
«4### - #### - #### - ####» 결제 3건
«5###_####_####_####»
«9###/####/####/####»
신용카드 «4###~####~####~####»
카드번호 «4###  ####  ####  ####» cvc
"""

ACCOUNT = "\n".join(DATA["ACCOUNT"])

EMAIL = "\n".join(DATA["EMAIL"])

HANDLE = "\n".join(DATA["HANDLE"])

INNOCENT = "\n".join(DATA["INNOCENT"])

_SAID = "공일이삼사오육칠팔구"
_FULL = "０１２３４５６７８９"


def _filled(rng: random.Random, pattern: str) -> str:
    """The pattern with a digit of the right kind at each mark."""
    kinds = {"#": "0123456789", "@": "0123456789", "%": _SAID, "$": _FULL}
    return "".join(rng.choice(kinds[c]) if c in kinds else c for c in pattern)


def _lines(block: str) -> list[str]:
    """The lines of a block; a piece may hold a line break."""
    lines: list[str] = []
    for line in block.strip("\n").split("\n"):
        if lines and lines[-1].count("«") > lines[-1].count("»"):
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    return lines


LINES = [
    (kind, line)
    for kind, block in (
        ("phone", PHONE),
        ("resident", RESIDENT),
        ("card", CARD),
        ("account", ACCOUNT),
        ("email", EMAIL),
        ("handle", HANDLE),
    )
    for line in _lines(block)
]


KINDS = tuple(dict.fromkeys(kind for kind, _ in LINES))


def positives(seed: int, count: int) -> Iterator[tuple[str, str, str, str]]:
    """`count` pieces, the lines in turn with new digits."""
    rng = random.Random(seed)
    for i in range(count):
        kind, line = LINES[i % len(LINES)]
        before, _, rest = line.partition("«")
        piece, _, behind = rest.partition("»")
        if kind not in ("email", "handle"):
            piece = _filled(rng, piece)
        yield kind, before, piece, behind


def negatives(seed: int, count: int) -> Iterator[str]:
    """`count` innocent lines, in turn."""
    lines = _lines(INNOCENT)
    for i in range(count):
        yield lines[i % len(lines)]
