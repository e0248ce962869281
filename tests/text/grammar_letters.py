"""A style of texts for the mask: boards of neighbourhoods, petitions, inquiries, flea markets.

Also notices of clubs and study groups and posters for missing people and pets; written by somebody
who had not seen the rules. It was first run once they were mended for `grammar_casual`, before any
rule was written for it. In a line {} is the piece (a letter in it narrows its form), $ and a letter
a word, _ and § digits, ¶ a line break, ~ in a shape a blank; | parts the lines.
"""

import random
import re
from collections.abc import Iterator

from phrases import phrases

DATA = phrases("grammar_letters")

KINDS = ("phone", "resident", "card", "account", "email", "handle")
_TEXT = "\n".join(DATA["_TEXT"])
_PARTS = re.split(r"==(\w+)==", _TEXT.replace("\n", " "))
_PAIRS = zip(_PARTS[1::2], _PARTS[2::2], strict=True)
TABLE = {n: [line.strip() for line in t.split("|")] for n, t in _PAIRS}
FILL = {k: v.split(",") for k, v in (line.replace(", ", ",").split("=") for line in TABLE["words"])}
FILL[":"] = [": ", ": ", ": ", " ", ":", ":", " : ", "\uff1a", "\n", " - ", " → ", ") "]
SHAPES = DATA["SHAPES"]
CROSSED = {"phone": 0.03, "resident": 0.3, "card": 0.25, "account": 0.04}
SPANS = DATA["SPANS"]


def _luhn(text: str) -> bool:
    pairs = enumerate(int(c) for c in reversed(text) if c.isdigit())
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in pairs) % 10 == 0


class _Writer:
    """Draws the parts of one text from a random source; the bank stays the same in it."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        names, self.shapes = r.choice(TABLE["banks"][: r.choice((7, 99))]).split(":")
        self.bank = r.choice(names.split(","))

    def digits(self, text: str) -> str:
        text = re.sub("_", lambda _: str(self.r.randrange(10)), text)
        return re.sub("§", lambda _: str(self.r.randrange(1, 10)), text)

    def shape(self, shapes: str) -> str:
        """One of the shapes, its capital replaced by a prefix, its digits drawn."""
        shape = self.r.choice(shapes.split())
        shape = re.sub("[A-D]", lambda m: self.r.choice(FILL[m[0]]), shape)
        return self.digits(shape).replace("~", " ")

    def odd(self, text: str) -> str:
        """A number written in full width, with letters, said, spaced or with other marks."""
        way, zero = self.r.randrange(9), self.r.choice("Oo")
        if way == 0:
            return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
        if way < 3:
            return text.replace("0", zero).replace("1", "l" if way == 2 else "1", 2)
        if way == 3 and text[0] not in "+(":
            return " ".join(re.sub("[-~./ ]", "", text))
        if way == 4 and text[0] != "+":
            said = text.translate({48 + i: c for i, c in enumerate("공일이삼사오육칠팔구")})
            return said[:3] + text[3:] if text[:2] == "01" and zero == "o" else said
        marks = (" - ", " ", ".", "/", "\u2013", "_", "ㅡ", "~", "  ", "·", "--")
        return text.replace(" - ", "-").replace("-", self.r.choice(marks))

    def number(self, kind: str, sub: str) -> str:
        """A number of the kind, sometimes crossed out in part or written oddly."""
        r = self.r
        shapes = SHAPES.get(sub or r.choice("mmmmmmmmmmmmmmmllvi" if kind == "phone" else "c"), "")
        if kind == "resident":
            year = r.randrange(2012, 2026) if sub == "y" else r.randrange(1938, 2008)
            born = f"{year % 100:02}{r.randrange(1, 13):02}{r.randrange(1, 29):02}"
            sex = r.randrange(1, 3) + 2 * (year >= 2000) + 4 * (sub == "f")
            shapes = " ".join(f"{born}{gap}{sex}______" for gap in ("-", "-", "-", "-", "", "~-~"))
        text = self.shape(self.shapes if kind == "account" else shapes)
        while kind == "card" and not _luhn(text):
            text = self.shape(shapes)
        chance, share = r.random(), CROSSED[kind]
        if chance < share:
            first, last = r.choice(SPANS[kind])
            mark, places = r.choice("****XxO○●"), [i for i, c in enumerate(text) if c.isdigit()]
            return "".join(mark if i in places[first:last] else c for i, c in enumerate(text))
        if kind == "account" and chance > 0.8:
            return text.replace("-", "")
        return self.odd(text) if chance < share + 0.16 else text

    def login(self, joints: str) -> str:
        one, two = self.r.choice(FILL["logins"]), self.r.choice(FILL["logins"])
        text = self.r.choice((one, one, one, one + two, *(one + c + two for c in joints)))
        text += self.digits(self.r.choice(("§_", "§__", "____", "0§1_", "9§", "8§0§", "", "")))
        return text + self.digits("§__") if text.isalpha() or len(text) < 5 else text

    def email(self, kind: str, sub: str) -> str:
        """An address, one in four disguised."""
        r, login, chance = self.r, self.login("._-"), self.r.random()
        host = r.choice(FILL["hosts" if r.random() < 0.8 else "oddhosts"])
        if chance < 0.82:
            return login + ("@" if chance < 0.75 else r.choice(("\uff20", " @ ", "@ "))) + host
        at = r.choice(("골뱅이", " 골뱅이 ", "[at]", "(at)", " at ", "앳", " 앳 ", "(골뱅이)", "@"))
        if chance < 0.87:
            site = r.choice(("네이버", "지메일", "다음", "한메일", "네이트"))
            return login + at + site + r.choice((".com", "닷컴", " 닷컴", " 점 컴"))
        dot = r.choice((".", ".", "닷", " 닷 ", " dot ", "[dot]", "(dot)", " 점 "))
        return login + at + host.replace(".", dot)

    def handle(self, kind: str, sub: str) -> str:
        """A login; for sub t or r name#number, for sub a with @ in front."""
        if sub in ("t", "r"):
            tail = self.r.choice(("#KR1", "#kr1", "#____")) if sub == "r" else "#____"
            names = (self.login("_."), self.r.choice(FILL["nicks"]))
            return self.r.choice(names) + self.digits(tail)
        return "@" * (sub == "a") + self.login("_.")

    def fill(self, text: str) -> str:
        """The template with its $ words, digits and line breaks put in."""
        own = {"b": self.bank, "n": self.r.choice(FILL["S"]) + self.r.choice(FILL["G"])}
        text = re.sub(r"\$(.)", lambda m: own.get(m[1]) or self.r.choice(FILL[m[1]]), text)
        return self.digits(text).replace("¶", "\n")

    def around(self, end: str) -> tuple[str, str]:
        """What stands before and behind a line with that end, each often empty."""
        gap = self.r.choice((" ", " ", "\n", "  ", "\n\n"))
        front = self.r.choice(TABLE["open"]) + gap if self.r.random() < 0.5 else ""
        stop = "" if end.endswith((".", "?", "!")) else self.r.choice((".", ".", "", "~", "!!"))
        return front, stop + gap + self.r.choice(TABLE["close"]) if self.r.random() < 0.45 else ""


def positives(seed: int, count: int) -> Iterator[tuple[str, str, str, str]]:
    """Kind, before, piece, behind; the text is before + piece + behind, the piece must vanish."""
    r = random.Random(seed)
    for number in range(count):
        kind, writer = KINDS[number % len(KINDS)], _Writer(r)
        line = r.choice(TABLE[kind] + TABLE["frames"]).replace("$j", r.choice(FILL[kind]))
        before, sub, behind = re.split(r"\{(\w?)\}", line)
        front, back = writer.around(behind)
        maker = {"email": writer.email, "handle": writer.handle}.get(kind, writer.number)
        yield kind, writer.fill(front + before), maker(kind, sub), writer.fill(behind + back)


def negatives(seed: int, count: int) -> Iterator[str]:
    """Innocent texts with look-alikes of personal data, nothing in them to mask."""
    r = random.Random(seed)
    for _ in range(count):
        writer, line = _Writer(r), r.choice(TABLE["innocent"])
        front, back = writer.around(line)
        yield writer.fill(front + line + back)
