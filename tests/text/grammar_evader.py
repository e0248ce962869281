"""A grammar of those who dodge filters, mix in English, or write from abroad, and of their noise."""

import random
import re

from tests.text import values_evader as values
from tests.text.frames_evader import FRAMES
from tests.text.innocent_evader import CHAT, INNOCENT

SLOT = re.compile(r"\{(#?\w+)\}")
Span = tuple[int, int, str]


def _plain(rng: random.Random, slot: str) -> str:
    """A value that is nobody's."""
    if slot.startswith("#"):
        return values.digits(rng, int(slot[1:]))
    year = rng.randint(2001, 2026)
    return {
        "year": str(year),
        "year2": str(year + 1),
        "mon": f"{rng.randint(1, 12):02d}",
        "day": f"{rng.randint(1, 28):02d}",
    }[slot]


def fill(rng: random.Random, frame: str) -> tuple[str, list[Span]]:
    """The frame with its slots filled, and the spans (start, end, kind) of personal values."""
    bank, account, sly = values.bank_account(rng)
    own = {"account": account, "account_sly": sly}
    out, spans, at, size = [], [], 0, 0
    for slot in SLOT.finditer(frame):
        before = frame[at : slot.start()].replace("{{", "{").replace("}}", "}")
        name, kind = slot.group(1), ""
        if name == "bank":
            value = bank
        elif name in own:
            value, kind = own[name], "account"
        elif name in values.VALUES:
            kind, make = values.VALUES[name]
            value = make(rng)
        else:
            value = _plain(rng, name)
        size += len(before)
        if kind:
            spans.append((size, size + len(value), kind))
        size += len(value)
        out += [before, value]
        at = slot.end()
    return "".join([*out, frame[at:].replace("{{", "{").replace("}}", "}")]), spans


def one(rng: random.Random) -> tuple[str, list[Span]]:
    """One text of the evader with the spans of what is personal in it."""
    pieces = []
    if rng.random() < 0.5:
        pieces.append(rng.choice(FRAMES[rng.choice(list(FRAMES))]))
        if rng.random() < 0.2:
            pieces.append(rng.choice(INNOCENT))
    else:
        pieces += [rng.choice(INNOCENT) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.5:
        pieces.append(rng.choice(CHAT))
    rng.shuffle(pieces)
    joint = rng.choice([" ", "\n", " / ", "\n\n", " .. "])
    text, spans = "", list[Span]()
    for piece in pieces:
        filled, found = fill(rng, piece)
        text += joint if text else ""
        spans += [(start + len(text), end + len(text), kind) for start, end, kind in found]
        text += filled
    return text, spans


def texts(count: int, seed: int) -> list[tuple[str, list[Span]]]:
    """`count` texts of the evader."""
    rng = random.Random(seed)
    return [one(rng) for _ in range(count)]
