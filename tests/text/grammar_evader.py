"""A grammar of those who dodge filters, mix in English or write from abroad, and of their noise."""

import random
import re
from collections.abc import Iterator

import values_evader as values
from phrases import phrases

DATA = phrases("grammar_evader")

FRAMES, INNOCENT, CHAT = DATA["FRAMES"], DATA["INNOCENT"], DATA["CHAT"]
SLOT = re.compile(r"\{(#?\w+)\}")
KINDS = ("resident", "foreigner", "phone", "card", "account", "email", "handle", "several")


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


def fill(rng: random.Random, frame: str) -> list[tuple[str, str]]:
    """The frame as (kind, stretch); kind is empty where the stretch is nobody's."""
    bank, account, sly = values.bank_account(rng)
    own = {"account": account, "account_sly": sly}
    out, at = [], 0
    for slot in SLOT.finditer(frame):
        out.append(("", frame[at : slot.start()].replace("{{", "{").replace("}}", "}")))
        name, at = slot.group(1), slot.end()
        if name in own:
            out.append(("account", own[name]))
        elif name in values.VALUES:
            kind, make = values.VALUES[name]
            out.append((kind, make(rng)))
        else:
            out.append(("", bank if name == "bank" else _plain(rng, name)))
    return [*out, ("", frame[at:])]


def _text(rng: random.Random, frames: list[str], joints: tuple[str, ...]) -> tuple[str, ...]:
    """The frames filled and joined: kind, then by turns what is nobody's and what is personal."""
    joint = rng.choice(joints)
    kinds, parts = list[str](), [""]
    for i, frame in enumerate(frames):
        parts[-1] += joint if i else ""
        for kind, stretch in fill(rng, frame):
            if kind:
                kinds.append(kind)
                parts += [stretch, ""]
            else:
                parts[-1] += stretch
    return (kinds[0] if len(kinds) == 1 else "several", *parts)


JOINTS = (" ", "\n", " / ", "\n\n", " .. ")


def positives(seed: int, count: int) -> Iterator[tuple[str, ...]]:
    """`count` texts with personal data: kind, then by turns what is nobody's and what is not."""
    rng = random.Random(seed)
    for _ in range(count):
        frames = [rng.choice(FRAMES[rng.choice(list(FRAMES))])]
        frames += [rng.choice(INNOCENT)] if rng.random() < 0.2 else []
        frames += [rng.choice(CHAT)] if rng.random() < 0.5 else []
        rng.shuffle(frames)
        yield _text(rng, frames, JOINTS)


def negatives(seed: int, count: int) -> Iterator[str]:
    """`count` innocent texts."""
    rng = random.Random(seed)
    for _ in range(count):
        frames = [rng.choice(INNOCENT) for _ in range(rng.choice((1, 1, 2)))]
        frames += [rng.choice(CHAT)] if rng.random() < 0.5 else []
        rng.shuffle(frames)
        yield _text(rng, frames, JOINTS)[1]
