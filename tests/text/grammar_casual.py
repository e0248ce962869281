"""The seventh style: comments, live chats, cafe posts, replies and bios; all data is random.

Written by somebody who had seen neither the rules nor the other sets. A line is a template: § is
the piece that must vanish, {…} a slot; the parts between |= are the kinds, the last innocent.
"""

import random
import re
import unicodedata
from collections.abc import Iterator

from phrases import phrases

DATA = phrases("grammar_casual")


def _cut(text: str, at: str) -> list[str]:
    return text.split(at)


KINDS = ("phone", "resident", "card", "account", "email", "handle")
_TEMPLATES = "\n".join(DATA["_TEMPLATES"])
MOBILE, OFFICE, RESIDENT, CARD, ACCOUNT, EMAIL, LABEL, MENTION, TAG, LINK, NEGATIVE = (
    re.split(r"[|\n]", part.strip()) for part in _TEMPLATES.split("|=\n")
)
NAMES = "김이박최정강조윤장임한오서신권황안송", "민서지우현하은도윤예린수빈태영", "호진아연준희경"
ROMAN = _cut("min ji hoon seo yeon jun woo ha eun bin young su hye jin kyu tae hyun do gks wl", " ")
WORDS = _cut("kkomi bori choco mandu latte cat mom daddy log daily moon star mint gamja love", " ")
NICKS = _cut("달빛 감자 새벽 토끼 라면 왕자 번개 고등어 초코 호랑이 구름 만두 도사 곰돌이", " ")
DOMAINS = "naver.com " * 21 + "gmail.com " * 13 + "hanmail.net " * 5 + "daum.net nate.com " * 2
DOMAINS += "kakao.com kakao.com outlook.com icloud.com own.co.kr own.kr own.com"
HOSTS = {"naver": "네이버", "gmail": "지메일", "hanmail": "한메일", "daum": "다음"}
SLOTS = DATA["SLOTS"]
BANKS = _cut(  # the commoner ones in front
    "국민 국민은행 KB국민 KB:6-2-6|카뱅 카뱅 카카오뱅크 카카오:3333.2-7|농협 NH농협:302.4-4-2|"
    "신한 신한 신한은행:110.3-6|우리 우리은행 우리은행:1002.3-6|토스 토스뱅크 토뱅:1000.4-4|"
    "하나 하나은행:3-6-5|농협 농협은행:356.4-4-2|기업 기업은행 IBK:3-6-2-3|새마을금고:9003.4-4-1|"
    "카뱅 카카오뱅크:7979.2-7|케이뱅크 케뱅:100.3-6|우체국:6-2-6|신협:132.3-6|농협:3-2-6|"
    "SC제일 제일은행:3-2-6|부산은행:112.4-4-2|대구은행 iM뱅크:508.2-6-1|광주은행:3-3-6|수협:4-4-4",
    "|",
)
BEFORE = _cut("ㄹㅇ |님들 |저기요 |아 |헐 |ㅋㅋㅋ |안녕하세요~ |🔥 |(수정) |와 |급)|ㅎㅇ ", "|")
AFTER = _cut(" ㅋㅋ|ㅋㅋㅋㅋ| ㅠㅠ| ㅎㅎ|!!|~| ^^| 🙏|..| ㄷㄷ| 👍|!|~!| ㅇㅇ|;;| 😂😂", "|")
DASHES = "\u2013\u2014\u2013\u2014\u2010\u2011\u2212\uff0d\u30fc\u3161~_/\u00b7,"
SEPS = {"phone": (48, 24, 8, 4), "resident": (66, 12, 4, 1), "card": (46, 20, 22, 2)}
JOSA = {"로": "으로 로", "이": "이 가", "을": "을 를", "예": "이에요 예요", "라": "이라 라"}
SPANS = {"k": "2 30 d", "Y": "2016 2025 d", "M": "1 12 d", "m": "1 12 02d", "D": "1 28 d"}
SPANS |= {"d": "1 28 02d", "H": "9 22 d", "e": "22 29 d", "i": "99 223 d"}
SPANS |= {"2x": "0 59 02d", "p": "9 3000 ,"}


class _Writer:
    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.pick = self.r.choice

    def digits(self, count: int, first: str = "0123456789") -> str:
        return self.pick(first) + "".join(self.r.choices("0123456789", k=count - 1))

    def slot(self, key: str) -> str:
        if key[0].isdigit() and key != "2x":  # {4}: four digits, {4x}: a 0 may be in front
            return self.digits(int(key.rstrip("x")), "123456789" + "0" * ("x" in key))
        if key in SLOTS:
            return self.pick(SLOTS[key].split())
        if key == "N":
            return "".join(self.pick(part) for part in NAMES)
        low, high, form = SPANS[key].split()
        return format(self.r.randint(int(low), int(high)) * (100 if key == "p" else 1), form)

    def fill(self, text: str, bank: str = "") -> str:
        return re.sub(r"\{([A-z0-9]+)\}", lambda m: self.slot(m[1]), text.replace("{B}", bank))

    def odd(self, parts: list[str], spoken: int) -> str:
        plain, whole = self.pick(["-", "-", "", " "]).join(parts), "".join(parts)
        wide = {0x30 + n: 0xFF10 + n for n in range(10)} | {0x2D: 0xFF0D}
        letters = str.maketrans({"0": self.pick("OOooㅇ○"), "1": self.pick("111lI")})
        spot = len(plain) if self.r.random() < 0.6 else len(parts[0])
        lettered = plain[:spot].translate(letters) + plain[spot:]
        said = str.maketrans("0123456789", self.pick("공공영") + "일이삼사오육칠팔구")
        mixed = "".join(c.translate(said) if self.r.random() < 0.4 else c for c in plain)
        gaps = ["", " ", "-", "-", "에 "] if spoken > 9 else ["", " ", "-"]
        made = [self.pick(DASHES).join(parts), plain.translate(wide), " ".join(whole), mixed]
        made += [self.pick([" - ", "- ", " -", ". ", "--", "  "]).join(parts)]
        made += [lettered if lettered != plain else plain.replace("1", "l", 1)]
        keycaps = re.sub(r"(\d)", "\\1\ufe0f\u20e3", whole)
        made += [self.pick(gaps).join(parts).translate(said), keycaps]
        return self.r.choices(made, (36, 9, 5, spoken // 2, 14, 12, spoken, 3))[0]

    def join(self, kind: str, parts: list[str]) -> str:
        weights = SEPS.get(kind, (46, 33, 5, 1))
        sep = self.r.choices(["-", "", " ", ".", "odd"], [*weights, 100 - sum(weights)])[0]
        if sep == "odd" and "".join(parts).isdigit():
            return self.odd(parts, 18 if kind == "phone" else 7)
        return ("-" if sep == "odd" else sep).join(parts)

    def phone(self, line: str) -> str:
        chance, areas = self.r.random(), "02 02 02 02 031 031 032 051 053 042 062 064 033 041 055"
        head = "010" if self.r.random() < 0.95 else self.pick(["011", "016", "017", "019"])
        if line in OFFICE:
            net = "070 070 0507 0507 0507 0502 0504 0503"
            head = self.pick((areas if self.r.random() < 0.7 else net).split())
        short = head[:3] not in ("010", "070", "050") and self.r.random() < 0.7
        parts = [head, self.digits(3 if short else 4, "23456789"), self.digits(4)]
        if chance < 0.04 and len(head) < 4:
            lead = self.pick(["+82 ", "+82-", "+82", "82-", "+82)", "(+82)"])
            return lead + head[1:] + self.pick("-- ").join(["", *parts[1:]])
        if head in areas and chance < 0.16:
            return self.pick(["({}){}-{}", "{}){}-{}", "({}) {}-{}", "{}) {}-{}"]).format(*parts)
        parts[2] = parts[2][:3] + self.pick("*Xx") if chance > 0.985 else parts[2]
        return self.join("phone", parts)

    def resident(self, line: str) -> str:
        child = re.search("아이|아들", line)
        year, foreign = self.r.randint(*((108, 124) if child else (45, 108))), "외" in line
        sex = (1 if year < 100 else 3) + 4 * foreign + self.r.randint(0, 1)
        behind = f"{sex}{self.digits(6)}"
        if self.r.random() < 0.16:
            kept = self.pick([1, 1, 1, 2, 4])
            behind = behind[:kept] + self.pick("***Xx●") * (7 - kept)
        return self.join("resident", [f"{year % 100:02d}{self.fill('{m}{d}')}", behind])

    def card(self, _: str) -> str:
        size = 15 if self.r.random() < 0.06 else 16
        head = self.pick(["34", "37"] if size == 15 else ["4", "4", "5", "5", "9", "35", "62"])
        body = head + self.digits(size - 1 - len(head))
        doubled = [int(c) * (2 - n % 2) for n, c in enumerate(reversed(body))]
        check = str(-sum(n // 10 + n % 10 for n in doubled) % 10)
        body += check if self.r.random() < 0.7 else self.digits(1)
        if size == 15:
            return self.join("card", [body[:4], body[4:10], body[10:]])
        if self.r.random() < 0.12:
            low, high = self.pick([(8, 12), (4, 12), (12, 16), (4, 8), (6, 12)])
            body = body[:low] + self.pick("***Xx") * (high - low) + body[high:]
        return self.join("card", [body[n : n + 4] for n in range(0, 16, 4)])

    def account(self) -> tuple[str, str]:
        weights = [max(1, 10 - n) for n in range(len(BANKS))]
        names, _, shape = self.r.choices(BANKS, weights)[0].partition(":")
        head, dot, sizes = shape.rpartition(".")
        parts = [head] * bool(dot) + [self.digits(int(n)) for n in sizes.split("-")]
        return self.pick(names.split()), self.join("account", parts)

    def login(self, mail: bool = False) -> str:
        name, word = "".join(self.r.sample(ROMAN, 2)), self.pick(WORDS)
        tail = self.pick(["", "", "9", "0"]) + self.digits(self.pick([1, 2, 3]))
        forms = [name + tail, name + tail, word + tail, f"{name}_{tail}", f"{word}_{name}"]
        forms += [f"{name}.{word}", f"{name}{word}{tail[:2]}"]
        more = [f"_{name}_", f"{name}_{word}_", f"{name[0]}._.{word}", f"{name}__{tail}"]
        return self.pick(forms if mail else forms + more)

    def email(self, _: str) -> str:
        user, domain = self.login(mail=True), self.pick(DOMAINS.split())
        domain = domain.replace("own", self.pick(WORDS) + self.pick(ROMAN))
        host, _, top = domain.partition(".")
        at = self.pick(["@", "[at]", " at ", "골뱅이", " 골뱅이 "])
        odd = self.pick([" @ ", "@ ", " @", "\uff20", "(at)", "(a)", "[@]", "(골뱅이)", "앳"])
        dot = self.pick(["[dot]", "(dot)", " dot ", "닷", "점", " . "])
        made = [user + at + domain, user + odd + domain, user + at + domain.replace(".", dot)]
        if host in HOSTS:
            end = self.pick([f".{top}", f" 점 {top}", {"com": "닷컴", "net": "닷넷"}[top]])
            made += [user + at + HOSTS[host] + end, f"{user}@{host}"]
        return self.pick(made) if self.r.random() < 0.26 else f"{user}@{domain}"

    def handle(self) -> tuple[str, str]:
        group = self.r.choices([LABEL, MENTION, TAG, LINK], (60, 20, 12, 8))[0]
        line, login = self.pick(group), self.login()
        nick = "".join(self.r.sample(NICKS, 2))
        if group is LABEL:
            login = login.replace("_", "언더바") if self.r.random() < 0.02 else login
            return line, "@" * ("{P}" in line and self.r.random() < 0.2) + login
        if group is MENTION:
            mixed = "".join(self.r.choices("abcdefghkmxyz23456789", k=9))
            nick += self.pick(["", f"-{mixed[:3]}", self.digits(2)])
            return line, "@" + self.r.choices([login, f"user-{mixed}", nick], (75, 12, 13))[0]
        if group is TAG:
            mark = "KR1" if "롤" in line else self.digits(self.pick([4, 4, 5]), "123456789")
            return line, f"{self.pick([nick, nick[:2] + self.digits(2), login.strip('_')])}#{mark}"
        return line, login


def _josa(piece: str, behind: str) -> str:
    last = [c for c in unicodedata.normalize("NFKC", piece).lower() if c.isalnum()][-1]
    tail = 8 if last in "178lr" else 4 * (last in "036mntkpbg")
    tail = (ord(last) - 0xAC00) % 28 if "가" <= last <= "힣" else tail
    for key, forms in JOSA.items():
        bare = tail == 0 or (tail == 8 and key == "로")
        behind = behind.replace(f"{{{key}}}", forms.split()[bare])
    return behind


def positives(seed: int, count: int) -> Iterator[tuple[str, str, str, str]]:
    """Yield (kind, before, piece, behind); only the piece must vanish."""
    w = _Writer(seed)
    for index in range(count):
        kind, bank = KINDS[index % len(KINDS)], ""
        if kind == "handle":
            line, piece = w.handle()
        elif kind == "account":
            line, (bank, piece) = w.pick(ACCOUNT), w.account()
        else:
            lines = {"phone": MOBILE + OFFICE, "card": CARD, "email": EMAIL, "resident": RESIDENT}
            line = w.pick(lines[kind])
            piece = getattr(w, kind)(line)
        before, behind = w.fill(line, bank).split("§")
        behind = _josa(piece, behind)
        if re.search("[가-힣:] $", before) and not re.match("[가-힣]", piece):
            before = before[:-1] if w.r.random() < 0.1 else before
        if re.match(" [가-힣]{2}", behind) and not re.search("[가-힣]$", piece):
            behind = behind[1:] if kind != "account" and w.r.random() < 0.06 else behind
        link = re.search("[a-z]/@?$", before)
        before = w.pick(BEFORE) + before if not link and w.r.random() < 0.12 else before
        yield kind, before, piece, behind + w.pick(AFTER) * (not link and w.r.random() < 0.2)


def negatives(seed: int, count: int) -> Iterator[str]:
    """Yield innocent lines whose numbers and signs only look like personal data."""
    w = _Writer(seed)
    for _ in range(count):
        text = w.pick(BEFORE) * (w.r.random() < 0.12) + w.fill(w.pick(NEGATIVE))
        yield text + w.pick(AFTER) * (w.r.random() < 0.2)
