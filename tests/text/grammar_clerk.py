"""A grammar as a careful clerk of a test desk fills it: forms by kind, four places, plain noise."""

import random
import re

from tests.text import values_clerk as values
from tests.text.frames_clerk import FRAMES
from tests.text.innocent_clerk import CHAT, INNOCENT

SLOT = re.compile(r"\{(\w+)\}")
KIND = {"mobile": "phone", "landline": "phone", "at": "handle", "name_at": "handle"}
FAMILY = "김이박최정강조윤장임한오서신권황안송류홍"
GIVEN = "민수 지혜 영호 서연 도윤 하은 준호 은정 상철 미경 태현 수빈 지우 현우".split()
PLACES = "강남 수원 부산 대전 춘천 전주 제주 마포 분당 일산 해운대 동탄".split()
PARTICLES = ["로", "으로", "에", "은", "는", "이", "가", "을", "를", "와", "도", "만", "라고", ""]
ENDINGS = ["입니다", "이에요", "예요", "이고요", "인데요", " 입니다", "임", "이요"]
Span = tuple[int, int, str]


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
                               f"97889{number(rng, 8)}", f"979-11-{number(rng, 5)}-"
                               f"{number(rng, 2)}-{tail}"])  # fmt: skip
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
            return f"{rng.choice('1588 1577 1544 1644 1661 1899 1600 1566'.split())}-" + number(
                rng, 4
            )
    raise KeyError(slot)


def fill(rng: random.Random, frame: str) -> tuple[str, list[Span]]:
    """The frame with its slots filled, and the spans (start, end, kind) of personal values."""
    bank, account = values.bank_account(rng)
    out, spans, at, size = [], [], 0, 0
    for slot in SLOT.finditer(frame):
        before = frame[at : slot.start()]
        name = slot.group(1)
        if name == "bank":
            value = bank
        elif name == "account":
            value = account
        elif name in values.VALUES:
            value = values.VALUES[name](rng)
        else:
            value = _plain(rng, name)
        size += len(before)
        if name == "account" or name in values.VALUES:
            spans.append((size, size + len(value), KIND.get(name, name)))
        size += len(value)
        out += [before, value]
        at = slot.end()
    return "".join([*out, frame[at:]]), spans


def one(rng: random.Random) -> tuple[str, list[Span]]:
    """One text of the clerk with the spans of what is personal in it."""
    pieces = []
    if rng.random() < 0.55:
        pieces.append(rng.choice(FRAMES[rng.choice(list(FRAMES))]))
        if rng.random() < 0.3:
            pieces.append(rng.choice(INNOCENT))
    else:
        pieces += [rng.choice(INNOCENT) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.6:
        pieces.append(rng.choice(CHAT))
    rng.shuffle(pieces)
    joint = rng.choice([" ", " ", "\n", ". ", "\n\n"])
    text, spans = "", list[Span]()
    for piece in pieces:
        filled, found = fill(rng, piece)
        text += joint if text else ""
        spans += [(start + len(text), end + len(text), kind) for start, end, kind in found]
        text += filled
    return text, spans


def texts(count: int, seed: int) -> list[tuple[str, list[Span]]]:
    """`count` texts of the clerk."""
    rng = random.Random(seed)
    return [one(rng) for _ in range(count)]
