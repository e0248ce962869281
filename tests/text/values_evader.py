"""The personal values of the evader's grammar: written to pass a filter, or as foreigners write."""

import random
from collections.abc import Callable

from phrases import phrases

DATA = phrases("values_evader")

Rng = random.Random
SPOKEN = ("공일이삼사오육칠팔구", "영일이삼사오육칠팔구")
CIRCLED = "⓪①②③④⑤⑥⑦⑧⑨"
BOLD = "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"
SIGNS = ["★", "♥", "*", "_", "/", "|", "~", "=", "+", "^", "ㅡ", "…", "--", " . ", "·", ",", "＿"]
WORDS = [" 다시 ", "다시", "에 ", " 에 ", " 하고 ", " 대시 "]
NICKS = DATA["NICKS"]
HOSTS = DATA["HOSTS"]
SPOKEN_HOSTS = ["네이버", "네이버 닷컴", "네이버.컴", "지메일", "지메일 쩜 컴", "네이버컴", "다음"]


def digits(rng: Rng, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


def split(plain: str, groups: tuple[int, ...], sep: str) -> str:
    parts, at = [], 0
    for size in groups:
        parts.append(plain[at : at + size])
        at += size
    return sep.join(parts)


def respell(rng: Rng, plain: str, groups: tuple[int, ...], spoken: bool = True) -> str:  # noqa: C901
    """The digits in groups as an evader writes them; `spoken` allows words for digits."""
    way = rng.choice(
        ["sign", "sign", "space", "each", "dots", "circled", "bold", "hidden", "keycap", "line",
         "letters", "wide", "gap", "hand"] + ["spoken", "mixed", "words"] * spoken
    )  # fmt: skip
    whole = split(plain, groups, "-")
    if way == "sign":
        return split(plain, groups, rng.choice(SIGNS))
    if way == "space":
        return split(plain, groups, rng.choice(["  ", " - ", "   ", "\u3000", "\u00a0"]))
    if way == "each":
        return split(" ".join(plain), tuple(2 * g for g in groups), rng.choice(["", "- "])).strip()
    if way == "dots":
        return rng.choice([".", "-", "_"]).join(plain)
    if way in {"circled", "bold"}:
        marks = CIRCLED if way == "circled" else BOLD
        joint = rng.choice(["", "-", " "])
        return split("".join(marks[int(d)] for d in plain), groups, joint)
    if way == "hidden":
        veil = rng.choice(["\u200b", "\u200d", "\u00ad", "\u2060", "\ufeff"])
        return split(plain, groups, rng.choice([veil, "-" + veil, veil + "-"]))
    if way == "keycap":
        return "".join(d + "\ufe0f\u20e3" for d in plain)
    if way == "line":
        return split(plain, groups, rng.choice(["\n", "-\n", "\n-"]))
    if way == "letters":
        return whole.replace("0", rng.choice("Oo")).replace("1", rng.choice(["l", "I", "1"]))
    if way == "wide":
        return "".join(chr(ord(c) + 0xFEE0) for c in whole)
    if way == "gap":
        return whole.replace("-", rng.choice([" -", "- ", ") ", ")("]))
    if way == "hand":
        return split(plain, groups, rng.choice(["가나", "없음", "ㅋ", "하트", "x", "점"]))
    names = rng.choice(SPOKEN)
    if way == "spoken":
        joint = rng.choice(["", " ", "-", "에 ", " 다시 "])
        return split("".join(names[int(d)] for d in plain), groups, joint)
    if way == "mixed":
        share = rng.choice([0.3, 0.5])
        body = "".join(names[int(d)] if rng.random() < share else d for d in plain)
        return split(body, groups, rng.choice(["", "-", " "]))
    return split(plain, groups, rng.choice(WORDS))


def _birth(rng: Rng, shift: int) -> str:
    year = rng.randint(1950, 2008)
    sex = rng.randint(1, 2) + (2 if year >= 2000 else 0) + shift
    return f"{year % 100:02d}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}{sex}{digits(rng, 6)}"


def resident(rng: Rng) -> str:
    return respell(rng, _birth(rng, 0), (6, 7))


def resident_apart(rng: Rng) -> str:
    plain = _birth(rng, 0)
    joint = rng.choice([" 뒷자리 ", ", 뒷자리는 ", " 뒤 ", " 뒤에 ", " / 뒷번호 ", "이고 뒷자리 "])
    return plain[:6] + joint + plain[6:]


def foreigner(rng: Rng) -> str:
    joint = rng.choice(["-"] * 6 + ["", " ", " - ", "/", "_", "."])
    return split(_birth(rng, 4), (6, 7), joint)


def foreigner_sly(rng: Rng) -> str:
    return respell(rng, _birth(rng, 4), (6, 7))


def mobile(rng: Rng) -> str:
    return respell(rng, "010" + rng.choice("23456789") + digits(rng, 7), (3, 4, 4))


def mobile_plain(rng: Rng) -> str:
    tail = rng.choice("23456789") + digits(rng, 7)
    head, sep = rng.choice([("010", "-"), ("010", " "), ("010", ""), ("+82 10", "-"),
                            ("+82-10", "-"), ("+8210", ""), ("(+82)10", " "), ("0082 10", " "),
                            ("82 10", " "), ("+82(0)10", "-")])  # fmt: skip
    return f"{head}{sep}{tail[:4]}{sep}{tail[4:]}"


def abroad(rng: Rng) -> str:
    """A number with a country's code."""
    form = rng.choice([
        "+1 (2##) 555-01##", "+1-4##-555-01##", "+1 6## 555 01##", "1-2##-555-01##",
        "+44 20 7946 0###", "+44 7700 900###", "+86 138 #### ####", "+86-139-####-####",
        "+86 15#########", "+81-90-####-####", "+81 3-####-####", "+84 9## ### ###",
        "+84 3########", "+998 90 ### ## ##", "+998(93)###-##-##", "+63 917 ### ####",
        "+66 81 ### ####", "+7 9## ###-##-##", "+7(9##)###-##-##", "+976 99## ####",
        "+91 98### #####", "+977 98########", "+62 812-####-####", "+49 151 ########",
        "+33 6 ## ## ## ##", "+61 4## ### ###", "+65 8### ####", "+852 6### ####",
        "+886 9## ### ###", "001-81-90-####-####", "00700-86-138-####-####", "+971 50 ### ####",
        "+380 67 ### ## ##", "+855 12 ### ###", "+94 77 ### ####", "+880 17##-######",
    ])  # fmt: skip
    return "".join(digits(rng, 1) if c == "#" else c for c in form)


def abroad_bare(rng: Rng) -> str:
    form = rng.choice(["(2##) 555-01##", "4##-555-01##", "6##.555.01##", "138####4###",
                       "07700 900###", "090-####-####", "8 9## ###-##-##",
                       "09## ### ###"])  # fmt: skip
    return "".join(digits(rng, 1) if c == "#" else c for c in form)


def _luhn(body: str) -> str:
    total = 0
    for place, mark in enumerate(reversed(body)):
        value = int(mark) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def _card(rng: Rng) -> str:
    head = rng.choice(["4", "4", "51", "53", "55", "9410", "6250", "3562"])
    body = head + digits(rng, 15 - len(head))
    return body + _luhn(body)


def card(rng: Rng) -> str:
    return split(_card(rng), (4, 4, 4, 4), rng.choice(["-", " ", "", "  ", "."]))


def card_sly(rng: Rng) -> str:
    return respell(rng, _card(rng), (4, 4, 4, 4))


BANKS = DATA["BANKS"]


def bank_account(rng: Rng) -> tuple[str, str, str]:
    """A bank, an account of it plainly written, and the same slyly written."""
    name, groups, head = rng.choice(BANKS)
    plain = head + digits(rng, sum(groups) - len(head))
    return name, split(plain, groups, rng.choice(["-"] * 4 + [" ", "", "."])), respell(
        rng, plain, groups
    )  # fmt: skip


def iban(rng: Rng) -> str:
    head, count = rng.choice([("DE", 18), ("GB", 0), ("FR", 23), ("NL", 0), ("KZ", 16), ("ES", 20)])
    body = (
        digits(rng, count)
        if count
        else ("NWBK" if head == "GB" else "ABNA") + digits(rng, 14 if head == "GB" else 10)
    )
    whole = head + digits(rng, 2) + body
    return split(whole, (4,) * 7, " ").strip() if rng.random() < 0.7 else whole


def account_abroad(rng: Rng) -> str:
    return digits(rng, rng.choice([9, 10, 12, 13]))


def nick(rng: Rng) -> str:
    body = rng.choice(NICKS).replace(".", "") + rng.choice(["", "_", ".", ""]) + rng.choice(NICKS)
    return body.replace("kim.su", "kimsu") + rng.choice(["", digits(rng, 2), digits(rng, 4), "_"])


def email(rng: Rng) -> str:
    return f"{nick(rng).rstrip('_')}@{rng.choice(HOSTS)}"


def email_sly(rng: Rng) -> str:
    local, host = nick(rng).rstrip("_"), rng.choice(HOSTS)
    spread = host.replace(".", rng.choice([" . ", "[.]", "(dot)", " dot ", "쩜", "점", " 닷 "]))
    return rng.choice([
        f"{local}(at){host}", f"{local} [at] {host}", f"{local}골뱅이{host}",
        f"{local} 골뱅이 {rng.choice(SPOKEN_HOSTS)}", f"{local}골뱅이{rng.choice(SPOKEN_HOSTS)}",
        f"{local}@{rng.choice(SPOKEN_HOSTS)}", f"{local} at {spread}", f"{local}@{spread}",
        f"{local} @ {host}", f"{local}＠{host}", f"{local}@{host.replace('.', ',')}",
        f"{local}#{host}" if rng.random() < 0.3 else f"{local}(a){host}",
        f"{local}ⓐ{host}", f"{local}@\u200b{host}", f"{local} (골뱅이) {host}",
        f"{local}_at_{host}", f"{local}@{host.replace('.', '。')}", f"{local}앳{host}",
        f"{' '.join(local)} @ {host}", f"{local}@\n{host}",
    ])  # fmt: skip


def handle(rng: Rng) -> str:
    name = nick(rng)
    return rng.choice([f"@{name}"] * 4 + [f"＠{name}", f"@ {name}", f"@\u200b{name}"])


def tagged(rng: Rng) -> str:
    return f"{nick(rng).replace('.', '')}#{digits(rng, 4)}"


VALUES: dict[str, tuple[str, Callable[[Rng], str]]] = {
    "resident": ("resident", resident), "apart": ("resident", resident_apart),
    "foreigner": ("foreigner", foreigner), "foreigner_sly": ("foreigner", foreigner_sly),
    "mobile": ("phone", mobile), "mobile_plain": ("phone", mobile_plain),
    "abroad": ("phone", abroad), "abroad_bare": ("phone", abroad_bare),
    "card": ("card", card), "card_sly": ("card", card_sly), "iban": ("account", iban),
    "account_abroad": ("account", account_abroad), "email": ("email", email),
    "email_sly": ("email", email_sly), "handle": ("handle", handle), "nick": ("handle", nick),
    "tagged": ("handle", tagged),
}  # fmt: skip
