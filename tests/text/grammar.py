"""Generated Korean sentences with personal data, written from the official formats, and decoys.

Resident and foreigner registration numbers: 주민등록법 시행규칙 (YYMMDD, a digit for
sex and century 1-4, foreigners 5-8, six digits; since October 2020 drawn by chance). Phone
numbers: the numbering plan (전기통신번호관리세칙). Cards: ISO/IEC 7812 as it is printed.
Accounts: the digit groups that
the banks print. Nothing here looks at how the mask finds them; all is made up by a seed.

`positives` yields (kind, text before, piece, text behind): of `piece` nothing may be left, of the
rest everything has to stay. `negatives` yields texts that have to stay as they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from phrases import phrases

DATA = phrases("grammar")

FULL = str.maketrans("0123456789", "０１２３４５６７８９")
SAID = str.maketrans("0123456789", "공일이삼사오육칠팔구")
ALIKE = str.maketrans("01", "Ol")


def digits(rng: random.Random, n: int) -> str:
    return "".join(rng.choices("0123456789", k=n))


def joined(rng: random.Random, groups: list[str], gaps: str) -> str:
    """Groups with one kind of gap, now and then with blanks around it."""
    gap = rng.choice(gaps.split("|"))
    if gap.strip() and rng.random() < 0.08:
        gap = f" {gap} "
    return gap.join(groups)


def resident(rng: random.Random) -> str:
    year, month = rng.randint(0, 99), rng.randint(1, 12)
    day = rng.randint(1, (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1])
    sex = rng.choice("12345678")
    rest = digits(rng, 6)
    if rng.random() < 0.2:
        shown = rng.randint(0, 3)
        rest = rest[:shown] + rng.choice("*xX") * (6 - shown)
    return joined(rng, [f"{year:02}{month:02}{day:02}", sex + rest], "-|-|-|-||–| |.|—")


AREAS = ("02", "031", "032", "033", "041", "042", "043", "044", "051", "052", "053", "054", "055")
AREAS += ("061", "062", "063", "064")


def phone(rng: random.Random) -> str:
    form = rng.random()
    if form < 0.62:
        first = "010" if rng.random() < 0.9 else rng.choice(("011", "016", "017", "018", "019"))
        middle = digits(rng, 4 if first == "010" else rng.choice((3, 4)))
    elif form < 0.85:
        first, middle = rng.choice(AREAS), digits(rng, rng.choice((3, 4)))
        middle = rng.choice("23456789") + middle[1:]
    elif form < 0.92:
        first, middle = "070", digits(rng, 4)
    else:
        first, middle = rng.choice(("0502", "0503", "0504", "0505", "0507")), digits(rng, 4)
    last = digits(rng, 4)
    if form < 0.85 and rng.random() < 0.12:
        abroad = rng.choice(("+82", "+82 ", "+82-", "0082-", "82-", "+82)", "+82 (0)"))
        return abroad + joined(rng, [first[1:], middle, last], "-|-| |.")
    if rng.random() < 0.08:
        return f"({first}){rng.choice(('', ' '))}{middle}-{last}"
    if rng.random() < 0.05:
        return f"{first}){middle}-{last}"
    number = joined(rng, [first, middle, last], "-|-|-|-||| |.|–|·|/|_")
    if first == "010" and rng.random() < 0.05:
        return joined(rng, [first, middle, last], "-|| ").translate(rng.choice((SAID, ALIKE)))
    return number


def card(rng: random.Random) -> str:
    if rng.random() < 0.08:
        number = rng.choice(("34", "37")) + digits(rng, 13)
        return joined(rng, [number[:4], number[4:10], number[10:]], "-| ")
    first = rng.choice(("4", "51", "52", "53", "54", "55", "62", "9", "94", "35"))
    number = first + digits(rng, 16 - len(first))
    groups = [number[i : i + 4] for i in (0, 4, 8, 12)]
    if rng.random() < 0.15:
        groups[2] = rng.choice("*xX") * 4
    elif rng.random() < 0.05:
        groups[3] = "****"
    gaps = "-|-|-| | ||." if groups[2].isdigit() and groups[3].isdigit() else "-|-| "
    return joined(rng, groups, gaps)


BANKS = DATA["BANKS"]


def account(rng: random.Random) -> tuple[str, str, str]:
    """(before, number, behind): plain digits are an account only beside the name of a bank."""
    bank, shape = rng.choice(tuple(BANKS.items()))
    groups = [digits(rng, n) for n in shape]
    groups[0] = rng.choice("123456789") + groups[0][1:]
    form = rng.random()
    if form < 0.25:
        return "", "-".join(groups), ""
    number = joined(rng, groups, "-|-|-|| ")
    if form < 0.8:
        return (
            rng.choice((f"{bank} ", f"{bank}: ", f"{bank} 계좌 ", f"{bank}(", "계좌번호 ")),
            number,
            "",
        )
    return "", number, rng.choice((f" {bank}", f" ({bank} 홍길동)", f"({bank})"))


NAMES = ("minsu", "hong.gildong", "kim_young", "happy-day", "lovely99", "j.park", "seoulite", "y2k")
HOSTS = ("naver.com", "daum.net", "gmail.com", "hanmail.net", "korea.kr", "snu.ac.kr", "mail.co.kr")


def email(rng: random.Random) -> str:
    name = rng.choice(NAMES) + rng.choice(("", digits(rng, rng.choice((2, 4)))))
    host = rng.choice(HOSTS)
    form = rng.random()
    if form < 0.65:
        return f"{name}@{host}"
    if form < 0.75:
        return f"{name} @ {host}"
    at = rng.choice(("골뱅이", " 골뱅이 ", "[at]", "(at)", " at ", " [at] ", "＠", "(골뱅이)"))
    dot = rng.choice((".", ".", " dot ", "[dot]", "닷", "(dot)")) if at != "＠" else "."
    return name + at + host.replace(".", dot)


def handle(rng: random.Random) -> tuple[str, str, str]:
    name = rng.choice(
        ("gildong_hong", "seoul.girl", "k_pop_lover", "news24", "_minji_", "abc1234", "민수아빠")
    )
    if rng.random() < 0.7 or name == "민수아빠":
        return "", "@" + name, ""
    return (
        rng.choice(("카톡 아이디 ", "카카오톡 ID: ", "텔레그램 아이디는 ", "인스타 아이디: ")),
        name,
        "",
    )


PLAIN: dict[str, Callable[[random.Random], str]] = {
    "resident": resident,
    "phone": phone,
    "card": card,
    "email": email,
}
CUED: dict[str, Callable[[random.Random], tuple[str, str, str]]] = {
    "account": account,
    "handle": handle,
}
KINDS = (*PLAIN, *CUED)

FRAMES = DATA["FRAMES"]


def noisy(rng: random.Random, piece: str) -> str:
    """As people and editors spoil it: full-width figures, zero-width marks, a no-break blank."""
    draw = rng.random()
    if draw < 0.08:
        return piece.translate(FULL)
    if draw < 0.11:
        at = rng.randrange(len(piece))
        return piece[:at] + rng.choice("\u200b\ufeff\u00ad") + piece[at:]
    if draw < 0.14:
        return piece.replace(" ", "\u00a0")
    if draw < 0.16:
        return piece.replace("-", "－").replace("@", "＠")
    return piece


def positives(seed: int, count: int) -> Iterator[tuple[str, str, str, str]]:
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.choice(KINDS)
        front, piece, back = CUED[kind](rng) if kind in CUED else ("", PLAIN[kind](rng), "")
        before, behind = rng.choice(FRAMES)
        yield kind, before + front, noisy(rng, piece), back + behind


def innocent(rng: random.Random) -> str:
    """Something with figures or an @ that is nobody's data."""
    year, month, day = rng.randint(1900, 2029), rng.randint(1, 12), rng.randint(1, 28)
    hour, minute, number = rng.randint(0, 23), rng.randint(0, 59), rng.randint(1, 10**6)
    big = rng.randint(1, 10 ** rng.randint(5, 13))
    return rng.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{year}. {month}. {day}.",
            f"{year}년 {month}월 {day}일 {hour}시 {minute}분",
            f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}:59",
            f"{year}/{month:02}/{day:02}~{year}/{month:02}/{day + 1:02}",
            f"{year}{month:02}{day:02}",
            f"{year}{month:02}{day:02}{hour:02}{minute:02}",
            f"{year % 100:02}{month:02}{day:02}",
            f"{year % 100:02}.{month:02}.{day:02}",
            f"{year}-{year + 4}",
            f"{year}~{year + 30}년",
            f"{year} {year + 1} {year + 2} {year + 3}",
            f"{big:,}원",
            f"{big}원",
            f"₩{big:,}",
            f"{big:,}명",
            f"{big} 명이 보았습니다",
            f"약 {number % 1000}억 {number % 997}만 원",
            f"{number % 100}.{number % 89}%",
            f"제{number % 300}조 제{number % 9}항 제{number % 5}호",
            f"법률 제{number % 20000}호",
            f"대통령령 제{10000 + number % 20000}호",
            f"{year}가합{number % 99999}",
            f"{year}고단{number % 9999} 판결",
            f"{year}헌바{number % 300}",
            f"의안번호 {2000000 + number % 99999}",
            f"사업자등록번호 {digits(rng, 3)}-{digits(rng, 2)}-{digits(rng, 5)}",
            f"ISBN 978-89-{digits(rng, 4)}-{digits(rng, 3)}-{digits(rng, 1)}",
            f"ISBN 97911{digits(rng, 8)}",
            f"주문번호 {year}{month:02}{day:02}-{digits(rng, 7)}",
            f"주문번호 {year}{month:02}{day:02}{digits(rng, 8)}",
            f"송장번호 {digits(rng, 4)}-{digits(rng, 4)}-{digits(rng, 4)}",
            f"운송장 {digits(rng, 12)}",
            f"접수번호 1AA-{year % 100:02}{month:02}-{digits(rng, 7)}",
            f"우편번호 {digits(rng, 5)}",
            f"고객센터 15{rng.choice(('44', '66', '77', '88', '99'))}-{digits(rng, 4)}",
            f"{number % 9}-{number % 7} 승리, 3:0 패배",
            f"{digits(rng, 3)}-{digits(rng, 2)}번지",
            f"참여인원 {big:,} / 200,000",
            f"0.{digits(rng, 11)}",
            f"3.{digits(rng, 14)}",
            f"{hour:02}:{minute:02}~{hour:02}:{minute:02}",
            f"버전 {number % 9}.{number % 11}.{number % 13}.{number}",
            f"개당 @ {number % 9000}원",
            f"북위 37도 {minute}분, 동경 126.{digits(rng, 6)}",
            f"{number % 100}평 {number % 30}층 {number % 2000}호",
            f"IP 192.168.{number % 256}.{day}",
            f"{digits(rng, 3)}번 버스, {digits(rng, 4)}번 버스",
            "112, 119, 1339, 02-120",
            "코로나19 KF94 5G LTE 4K",
            f"점수 {number % 10}.{number % 10}점, 별점 5/5",
        )
    )


def negatives(seed: int, count: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        before, behind = rng.choice(FRAMES)
        yield before + innocent(rng) + behind
