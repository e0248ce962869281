"""A grammar as a careful clerk of a test desk fills it: forms by kind, four places, plain noise.

Slots of its frames: `{resident} {foreigner} {phone} {mobile} {landline} {card} {account} {email}
{at} {name_at}` are personal; `{bank}` is the bank of the account that follows; others are not.
"""

import random
import re
from collections.abc import Iterator

import values_clerk as values
from phrases import phrases

DATA = phrases("grammar_clerk")

FRAMES, INNOCENT, CHAT = DATA["FRAMES"], DATA["INNOCENT"], DATA["CHAT"]
SLOT = re.compile(r"\{(\w+)\}")
KIND = {"mobile": "phone", "landline": "phone", "at": "handle", "name_at": "handle"}
FAMILY = "김이박최정강조윤장임한오서신권황안송류홍"
GIVEN = DATA["GIVEN"]
PLACES = DATA["PLACES"]
PARTICLES = ["로", "으로", "에", "은", "는", "이", "가", "을", "를", "와", "도", "만", "라고", ""]
ENDINGS = ["입니다", "이에요", "예요", "이고요", "인데요", " 입니다", "임", "이요"]
KINDS = ("resident", "foreigner", "phone", "card", "account", "email", "handle", "several")


def _plain(rng: random.Random, slot: str) -> str:  # noqa: C901
    """A value that is nobody's: a name's filler, a date, a price, a version."""
    if slot in {"who", "place", "jo", "end"}:
        who = rng.choice(FAMILY) + rng.choice(GIVEN)
        return {"who": who, "place": rng.choice(PLACES), "jo": rng.choice(PARTICLES),
                "end": rng.choice(ENDINGS)}[slot]  # fmt: skip
    if re.fullmatch(r"d\d+", slot):
        return values.digits(rng, int(slot[1:]))
    year, month, day = rng.randint(1990, 2026), rng.randint(1, 12), rng.randint(1, 28)
    number = values.digits
    match slot:
        case "y":
            return str(year)
        case "s":
            return str(rng.randint(1, 9))
        case "n":
            return str(rng.randint(1, 999))
        case "n2" | "m":
            return str(rng.randint(10, 59))
        case "date":
            form = rng.choice(["{}-{:02d}-{:02d}", "{}.{:02d}.{:02d}", "{}. {}. {}.", "{}/{}/{}",
                               "{}년 {}월 {}일", "{}.{}.{}"])  # fmt: skip
            return str(form.format(year if rng.random() < 0.8 else f"{year % 100:02d}", month, day))
        case "dense":
            return f"{year}{month:02d}{day:02d}"
        case "price":
            return f"{rng.randint(1, 99999) * 100:,}"
        case "time":
            return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        case "isbn":
            tail = number(rng, 1)
            return rng.choice([f"978-89-{number(rng, 4)}-{number(rng, 3)}-{tail}",
                               f"97889{number(rng, 8)}", (f"979-11-{number(rng, 5)}-"
                               f"{number(rng, 2)}-{tail}")])  # fmt: skip
        case "isbn10":
            return f"89-{number(rng, 4)}-{number(rng, 3)}-{rng.choice('0123456789X')}"
        case "ip":
            return ".".join(str(rng.randint(1, 254)) for _ in range(4))
        case "geo":
            return f"37.{number(rng, 4)}, 127.{number(rng, 4)}"
        case "ver":
            return f"{rng.randint(0, 20)}.{rng.randint(0, 30)}.{rng.randint(0, 20)}"
        case "biz":
            return f"{rng.randint(100, 899)}-{number(rng, 2)}-{number(rng, 5)}"
        case "corp":
            return f"{rng.choice(['1101', '1301', '1801', '1201'])}11-{number(rng, 7)}"
        case "rep":
            return (
                f"{rng.choice(['1588', '1577', '1544', '1644', '1661', '1899', '1600', '1566'])}-"
                + number(rng, 4)
            )
    raise KeyError(slot)


def fill(rng: random.Random, frame: str) -> list[tuple[str, str]]:
    """The frame as (kind, stretch); kind is empty where the stretch is nobody's."""
    bank, account = values.bank_account(rng)
    out, at = [], 0
    for slot in SLOT.finditer(frame):
        out.append(("", frame[at : slot.start()]))
        name, at = slot.group(1), slot.end()
        if name == "account":
            out.append((name, account))
        elif name in values.VALUES:
            out.append((KIND.get(name, name), values.VALUES[name](rng)))
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


JOINTS = (" ", " ", "\n", ". ", "\n\n")


def positives(seed: int, count: int) -> Iterator[tuple[str, ...]]:
    """`count` texts with personal data: kind, then by turns what is nobody's and what is not."""
    rng = random.Random(seed)
    for _ in range(count):
        frames = [rng.choice(FRAMES[rng.choice(list(FRAMES))])]
        frames += [rng.choice(INNOCENT)] if rng.random() < 0.3 else []
        frames += [rng.choice(CHAT)] if rng.random() < 0.6 else []
        rng.shuffle(frames)
        yield _text(rng, frames, JOINTS)


def negatives(seed: int, count: int) -> Iterator[str]:
    """`count` innocent texts."""
    rng = random.Random(seed)
    for _ in range(count):
        frames = [rng.choice(INNOCENT) for _ in range(rng.choice((1, 1, 2)))]
        frames += [rng.choice(CHAT)] if rng.random() < 0.6 else []
        rng.shuffle(frames)
        yield _text(rng, frames, JOINTS)[1]
