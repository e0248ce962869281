"""The personal values of the clerk's grammar: six kinds in the forms a form-filler writes them."""

import random
from collections.abc import Callable

from phrases import phrases

DATA = phrases("values_clerk")

Rng = random.Random
WIDE = {ord("0") + i: chr(0xFF10 + i) for i in range(10)} | {ord("-"): "－"}
MOBILE_SEPARATORS = ["-"] * 12 + ["", "", "", "", " ", " ", ".", ".", " - ", "–", "‑", "－", "·"]
LOCALS = DATA["LOCALS"]
DOMAINS = ["naver.com"] * 6 + ["gmail.com"] * 5 + ["daum.net", "hanmail.net", "kakao.com"] * 2
DOMAINS += ["nate.com", "hotmail.com", "yahoo.co.kr", "outlook.com", "icloud.com", "korea.kr"]
DOMAINS += ["snu.ac.kr", "mail.hansol.co.kr", "dreamwiz.com", "seoul.go.kr", "abc-tech.io"]
AREAS = DATA["AREAS"]
# bank, the groups of digits of its account numbers, a usual beginning
BANKS = DATA["BANKS"]


def digits(rng: Rng, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


def maybe_wide(rng: Rng, text: str, share: float = 0.03) -> str:
    return text.translate(WIDE) if rng.random() < share else text


def _birth(rng: Rng) -> tuple[int, str]:
    year = rng.choice([rng.randint(1935, 1999), rng.randint(1960, 1999), rng.randint(2000, 2015)])
    return year, f"{year % 100:02d}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"


def _identity(rng: Rng, shift: int) -> str:
    year, birth = _birth(rng)
    sex = rng.randint(1, 2) + (2 if year >= 2000 else 0) + shift
    joint = rng.choice(["-"] * 10 + ["", "", " ", " ", " - ", "–", "－", "- "])
    return maybe_wide(rng, f"{birth}{joint}{sex}{digits(rng, 6)}")


def resident(rng: Rng) -> str:
    return _identity(rng, 0)


def foreigner(rng: Rng) -> str:
    return _identity(rng, 4)


def mobile(rng: Rng) -> str:
    head = rng.choice(["010"] * 12 + ["011", "016", "017", "018", "019"])
    middle = digits(rng, 4 if head == "010" else 3)
    middle = rng.choice("23456789") + middle[1:]
    sep = rng.choice(MOBILE_SEPARATORS)
    roll = rng.random()
    if roll < 0.04:
        return f"({head}){rng.choice(['', ' '])}{middle}-{digits(rng, 4)}"
    if roll < 0.07:
        return f"{head}){middle}-{digits(rng, 4)}"
    if roll < 0.09:
        return f"{head}-{middle}{digits(rng, 4)}"
    if roll < 0.16:
        plus = rng.choice(["+82 ", "+82-", "+82", "82-", "+82)", "(+82) ", "+82 (0)"])
        return f"{plus}{head[1:]}{sep}{middle}{sep}{digits(rng, 4)}"
    return maybe_wide(rng, f"{head}{sep}{middle}{sep}{digits(rng, 4)}")


def landline(rng: Rng) -> str:
    area = rng.choice([*AREAS, "02", "02", "070", "070", "0505", "0507"])
    middle = rng.choice("23456789") + digits(rng, rng.choice([2, 3, 3]) if area[:2] != "07" else 3)
    tail = digits(rng, 4)
    form = rng.choice(["{a}-{m}-{t}"] * 6 + ["{a}){m}-{t}", "({a}) {m}-{t}", "({a}){m}-{t}"] * 2
                      + ["{a} {m} {t}", "{a}.{m}.{t}", "{a}{m}{t}", "{a} {m}-{t}"])  # fmt: skip
    return str(form.format(a=area, m=middle, t=tail))


def phone(rng: Rng) -> str:
    return landline(rng) if rng.random() < 0.2 else mobile(rng)


def _luhn(body: str) -> str:
    total = 0
    for place, mark in enumerate(reversed(body)):
        value = int(mark) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def card(rng: Rng) -> str:
    sep = rng.choice(["-"] * 6 + [" "] * 4 + ["", "", ".", " - ", "–"])
    if rng.random() < 0.06:
        body = rng.choice(["34", "37"]) + digits(rng, 12)
        number = body + _luhn(body)
        return sep.join([number[:4], number[4:10], number[10:]])
    head = rng.choice(["4", "4", "51", "52", "53", "54", "55", "9410", "9430", "3560", "6210"])
    body = head + digits(rng, 15 - len(head))
    last = _luhn(body) if rng.random() < 0.9 else rng.choice("0123456789")
    number = body + last
    return maybe_wide(rng, sep.join(number[i : i + 4] for i in range(0, 16, 4)))


def bank_account(rng: Rng) -> tuple[str, str]:
    """A bank's name and an account number in that bank's grouping."""
    name, groups, head = rng.choice(BANKS)
    plain = head + digits(rng, sum(groups) - len(head))
    parts, at = [], 0
    for size in groups:
        parts.append(plain[at : at + size])
        at += size
    sep = rng.choice(["-"] * 10 + ["", "", "", " ", " ", ".", " - ", "–"])
    return name, maybe_wide(rng, sep.join(parts))


def email(rng: Rng) -> str:
    local = rng.choice(LOCALS)
    local += rng.choice(["", "", "_", ".", "-", "+"]) + rng.choice([*LOCALS, "", "x"])
    local = local.rstrip("_.-+") + rng.choice(["", str(rng.randint(1, 99)), digits(rng, 4)])
    if len(local) < 3:
        local += digits(rng, 3)
    whole = f"{local}@{rng.choice(DOMAINS)}"
    roll = rng.random()
    if roll < 0.04:
        return whole.upper()
    if roll < 0.07:
        return whole.replace("@", "＠")
    if roll < 0.10:
        return whole.replace("@", rng.choice([" @ ", "(at)", "[at]", " @", "@ "]))
    return whole


def account_name(rng: Rng) -> str:
    """A name in a messenger or social network, without the at sign."""
    body = rng.choice(LOCALS).replace(".", "") + rng.choice(["", "_", "."]) + rng.choice(LOCALS)
    body = body.replace(".", rng.choice([".", "_"]))
    tail = rng.choice(["", "", "_", digits(rng, 2), digits(rng, 4), "__", "_kr", "_official"])
    return body + tail


def korean_name(rng: Rng) -> str:
    """A nickname in Hangul, as video sites allow after the at sign."""
    how = rng.choice(["행복한", "배고픈", "달리는", "푸른", "졸린", "용감한", "느긋한"])
    who = rng.choice(["고양이", "감자", "여행자", "엄마", "하마", "직장인", "라떼"])
    return how + who + rng.choice(["", digits(rng, 2), digits(rng, 4), "TV"])


def at_name(rng: Rng) -> str:
    return "@" + (korean_name(rng) if rng.random() < 0.12 else account_name(rng))


VALUES: dict[str, Callable[[Rng], str]] = {
    "resident": resident, "foreigner": foreigner, "phone": phone, "mobile": mobile,
    "landline": landline, "card": card, "email": email, "at": at_name, "name_at": account_name,
}  # fmt: skip
