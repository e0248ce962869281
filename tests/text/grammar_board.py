"""Personal data as it stands on boards, in petitions, second-hand ads, job ads and complaints.

The fifth style, written from the outside: the mask, the other styles and what they were closed with
were not read. A piece is drawn in four steps: which number, how it is written (`_spelt`), how its
groups are joined, which sentence of which genre holds it. The innocent half speaks of the same
things (banks whose names are words, messengers, cards, calls) with figures that are nobody's.
Service numbers (15xx, 1xx) are innocent, as in the other styles; 080 and numbers of companies are
in neither half.

`positives` yields (kind, text before, piece, text behind); `negatives` texts that have to stay.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import innocent_board
from frames_board import (
    AREAS,
    ATS,
    BANKS,
    CALLING,
    CLOSING,
    FOREIGN,
    GIVEN,
    HOSTS,
    IDENTITY,
    OPENING,
    PAYING,
    SENDING,
    SURNAMES,
    SYLLABLES,
    TALKING,
    TELLING,
    WRITING,
)

Piece = tuple[str, str, str, str]
KINDS = ("phone", "resident", "card", "account", "email", "handle")
SAID = dict(zip("0123456789", "공일이삼사오육칠팔구", strict=True))
WIDE = dict(zip("0123456789", "０１２３４５６７８９", strict=True))
LETTERS = {"0": "O", "1": "l"}
JAMO = {"0": "ㅇ", "1": "ㅣ"}


def _n(rng: random.Random, count: int, first: str = "0123456789") -> str:
    return rng.choice(first) + "".join(rng.choice("0123456789") for _ in range(count - 1))


def _name(rng: random.Random) -> str:
    return rng.choice(SURNAMES) + rng.choice(GIVEN)


def _framed(rng: random.Random, kind: str, piece: str, frames: tuple[str, ...]) -> Piece:
    before, behind = rng.choice(frames).split("§")
    return kind, rng.choice(OPENING) + before, piece, behind + rng.choice(CLOSING)


USUAL = (76, 9, 5, 2, 8, 0, 0)
HIDING = (60, 12, 6, 6, 8, 6, 2)


def _spelt(rng: random.Random, groups: list[str], shares: tuple[int, ...] = USUAL) -> list[str]:
    """Most write digits; some a group or all of it in Hangul, wide, or with look-alikes. Phones
    are hidden more often than what is only given to be paid."""
    ways = ("plain", "group", "all", "mixed", "wide", "alike", "keycap")
    way = rng.choices(ways, shares)[0]
    if way == "group":
        chosen = rng.randrange(len(groups))
        return ["".join(SAID[c] for c in g) if i == chosen else g for i, g in enumerate(groups)]
    if way == "plain":
        return groups
    zero = rng.choice("공영") if way == "all" else "공"
    tables = {
        "all": SAID | {"0": zero}, "wide": WIDE, "alike": rng.choice((LETTERS, JAMO)),
        "mixed": {c: rng.choice((c, s)) for c, s in SAID.items()},
        "keycap": {c: c + "\ufe0f\u20e3" for c in SAID},
    }  # fmt: skip
    return ["".join(tables[way].get(c, c) for c in g) for g in groups]


MARKS = ("-", " ", ".", "", " - ", "ㅡ", "~", "_", "/", "·", ", ", "--", " . ", "－", "*")
PAID = (45, 19, 4, 20, 4, 1, 1, 1, 1, 1, 1, 0, 0, 2, 0)
TOLD = (34, 16, 8, 14, 6, 3, 3, 3, 3, 2, 2, 2, 1, 2, 1)


def _joined(rng: random.Random, groups: list[str], shares: tuple[int, ...] = PAID) -> str:
    mark = rng.choices(MARKS, shares)[0]
    return mark.join(groups)


# ---------------------------------------------------------------------------------------- phone


def _phone(rng: random.Random) -> Piece:
    draw = rng.random()
    if draw < 0.66:
        head = "010" if rng.random() < 0.94 else rng.choice(("011", "016", "017", "018", "019"))
        groups = [head, _n(rng, 4 if head == "010" else 3, "23456789"), _n(rng, 4)]
    elif draw < 0.80:
        groups = [rng.choice(AREAS), _n(rng, rng.choice((3, 4)), "23456789"), _n(rng, 4)]
    elif draw < 0.86:
        groups = ["070", _n(rng, 4, "4578"), _n(rng, 4)]
    elif draw < 0.90:
        groups = ["050" + rng.choice("2478"), _n(rng, 4, "1357"), _n(rng, 4)]
    else:
        body = [_n(rng, 4, "23456789"), _n(rng, 4)]
        mark = rng.choice(("-", " ", ""))
        head = rng.choice(("+82 10", "+82-10", "+8210", "+82)10", "82-10", "+82 (0)10", "0082 10"))
        return _framed(rng, "phone", mark.join([head, *body]), TELLING)
    spelt = _spelt(rng, groups, HIDING)
    special = rng.random()
    if special < 0.06:
        piece = f"{spelt[0]}){'-'.join(spelt[1:])}"
    elif special < 0.10:
        piece = f"({spelt[0]}){rng.choice(('', ' '))}{'-'.join(spelt[1:])}"
    elif special < 0.12:
        piece = " ".join("".join(groups))
    elif special < 0.14:
        piece = rng.choice((" 다시 ", "에 ", " 에 ", " 대시 ")).join(spelt)
    elif special < 0.16:
        piece = f"{spelt[0]} {spelt[1]}-{spelt[2]}"
    else:
        piece = _joined(rng, spelt, TOLD)
    return _framed(rng, "phone", piece, TELLING)


# ------------------------------------------------------------------------------------- resident


def _resident(rng: random.Random) -> Piece:
    foreign = rng.random() < 0.25
    young = rng.random() < 0.3
    year = rng.randint(0, 7) if young else rng.randint(45, 99)
    front = f"{year:02d}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"
    gender = rng.choice(("78" if young else "56") if foreign else ("34" if young else "12"))
    back = gender + _n(rng, 6)
    draw = rng.random()
    if draw < 0.12:
        piece = f"{front}-{gender}{rng.choice('*X×○●#') * 6}"
    elif draw < 0.20:
        piece = f"{front}-{gender}"
    elif draw < 0.24:
        piece = f"앞자리 {front} 뒷자리 {back}"
    elif draw < 0.27:
        piece = f"{front[:2]}.{front[2:4]}.{front[4:]}-{back}"
    else:
        mark = rng.choices(("-", " ", "", " - ", "ㅡ", ".", "/", "~", "_", "－"),
                           (45, 14, 14, 8, 4, 3, 4, 3, 3, 2))[0]  # fmt: skip
        piece = mark.join(_spelt(rng, [front, back]))
    frames = tuple(f.format(name=_name(rng)) for f in (FOREIGN if foreign else IDENTITY))
    return _framed(rng, "resident", piece, frames)


# ----------------------------------------------------------------------------------------- card


def _luhn(digits: str) -> str:
    total = 0
    for i, c in enumerate(reversed(digits)):
        d = int(c) * (2 if i % 2 == 0 else 1)
        total += d - 9 if d > 9 else d
    return digits + str(-total % 10)


def _card(rng: random.Random) -> Piece:
    draw = rng.random()
    if draw < 0.06:
        number = _luhn("37" + _n(rng, 12))
        groups = [number[:4], number[4:10], number[10:]]
    else:
        head = rng.choice(("40", "45", "51", "53", "55", "94", "62", "35"))
        number = _luhn(head + _n(rng, 13))
        groups = [number[i : i + 4] for i in range(0, 16, 4)]
        star = rng.choice("**X×●#")
        if draw < 0.16:
            groups = [groups[0], groups[1][:2] + star * 2, star * 4, groups[3]]
            return _framed(rng, "card", rng.choice(("-", "-", " ", "")).join(groups), PAYING)
        if draw < 0.24:
            groups = [groups[0], star * 4, star * 4, groups[3]]
            return _framed(rng, "card", rng.choice(("-", "-", " ")).join(groups), PAYING)
        if draw < 0.28:
            groups = [groups[0], groups[1], groups[2], star * 4]
            return _framed(rng, "card", "-".join(groups), PAYING)
    return _framed(rng, "card", _joined(rng, _spelt(rng, groups)), PAYING)


# -------------------------------------------------------------------------------------- account


def _account(rng: random.Random) -> Piece:
    bank = rng.choice(tuple(BANKS))
    groups = [_n(rng, int(c)) for c in rng.choice(BANKS[bank])]
    if bank in ("카카오뱅크", "카뱅", "카카오"):
        groups[:2] = [rng.choice(("3333", "7979", "3355")), "0" + _n(rng, 1, "1234")]
    elif bank == "신한":
        groups[0] = rng.choice(("110", "140", "100"))
    frames = tuple(f.format(bank=bank, name=_name(rng)) for f in SENDING)
    return _framed(rng, "account", _joined(rng, _spelt(rng, groups)), frames)


# ----------------------------------------------------------------------------- e-mail and handle


def _login(rng: random.Random) -> str:
    word = "".join(rng.choice(SYLLABLES) for _ in range(rng.choice((2, 2, 3))))
    tail = rng.choice(("", "", _n(rng, 2), _n(rng, 4), _n(rng, 3)))
    return word + rng.choice(("", "", "", "_", ".", "-") if tail else ("",)) + tail


def _email(rng: random.Random) -> Piece:
    login, host = _login(rng), rng.choice(tuple(HOSTS))
    name, dot = host.split(".", 1)
    draw = rng.random()
    at = rng.choice(ATS)
    if draw < 0.40:
        piece = f"{login}@{host}"
    elif draw < 0.62:
        piece = f"{login}{at}{host}"
    elif draw < 0.80:
        point = rng.choice(
            (" . ", ". ", " dot ", "[dot]", "(dot)", "점", " 점 ", "쩜", ",", "．", "닷")
        )
        piece = f"{login}{at}{name}{point}{dot}"
    elif draw < 0.94:
        piece = f"{login}{at}{rng.choice(HOSTS[host]) or host}"
    elif draw < 0.97:
        piece = f"{login.upper()}@{host.upper()}"
    else:
        piece = f"{login}@{name}"
    return _framed(rng, "email", piece, WRITING)


def _handle(rng: random.Random) -> Piece:
    login = _login(rng)
    if rng.random() < 0.25:
        return _framed(
            rng, "handle", rng.choice(("@", "@", "@ ")) + login.replace("-", "_"), CALLING
        )
    if rng.random() < 0.05:
        login = " ".join(login.split("_"))
    return _framed(rng, "handle", login, TALKING)


MAKERS: tuple[Callable[[random.Random], Piece], ...] = (
    _phone, _phone, _resident, _card, _account, _account, _email, _handle,
)  # fmt: skip


def positives(seed: int, count: int) -> Iterator[Piece]:
    """`count` pieces of all kinds; phones and accounts twice as often as the others."""
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.choice(MAKERS)(rng)


def negatives(seed: int, count: int) -> Iterator[str]:
    """`count` innocent texts."""
    rng = random.Random(seed)
    for _ in range(count):
        yield innocent_board.text(rng, rng.choice(OPENING), rng.choice(CLOSING))
