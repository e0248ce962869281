"""Generates Korean sentences with personal data in them, and decoys that look like it.

Everything is made up by a seeded generator. Two families are kept apart on purpose: `personal`
yields (text, the pieces that must not survive), `decoys` yields text in which nothing may change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

FULL = str.maketrans("0123456789-@.", "０１２３４５６７８９－＠．")
BANKS = ("국민은행", "신한", "우리은행", "하나은행", "농협", "카카오뱅크", "토스뱅크", "기업은행")
NAMES = ("minsu", "hong.gildong", "kim_young", "happy-day", "lovely99", "j.park", "seoulite")
HOSTS = ("naver.com", "daum.net", "gmail.com", "korea.co.kr", "hanmail.net", "snu.ac.kr")
HANDLES = ("gildong_hong", "seoul.girl", "민수아빠", "k_pop_lover", "도깨비99", "news24", "_minji_")


def _digits(rng: random.Random, n: int, first: str = "0123456789") -> str:
    return rng.choice(first) + "".join(rng.choice("0123456789") for _ in range(n - 1))


def resident(rng: random.Random) -> str:
    day = f"{rng.randint(0, 99):02}{rng.randint(1, 12):02}{rng.randint(1, 28):02}"
    sex = rng.choice("12345678")  # 5 to 8 are foreigners; the last digit is no check digit
    tail = rng.choice((_digits(rng, 6), _digits(rng, 6), "******", _digits(rng, 2) + "****"))
    return day + rng.choice(("-", "-", "", " ", " - ", "–", ".")) + sex + tail


def phone(rng: random.Random) -> str:
    a = rng.choice(("010", "010", "010", "011", "016", "017", "019"))
    b, c = _digits(rng, rng.choice((3, 4)), "23456789"), _digits(rng, 4)
    if rng.random() < 0.3:
        a = rng.choice(("02", "031", "032", "042", "051", "053", "064", "070", "0505"))
    gap = rng.choice(("-", "-", "-", "", " ", ".", " - ", "·", "/"))
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(("+82", "+82 ", "+82-", "82-")) + f"{a[1:]}-{b}-{c}"
    if kind < 0.2:
        return f"({a}){rng.choice(('', ' '))}{b}-{c}"
    if kind < 0.25:
        return f"{a}){b}-{c}"
    if kind < 0.28:
        return " ".join("010" + _digits(rng, 8))
    if kind < 0.31:
        said = str.maketrans("0123456789", "공일이삼사오육칠팔구")
        return (
            rng.choice(("", "-", " "))
            .join(("010", _digits(rng, 4), _digits(rng, 4)))
            .translate(said)
        )
    return gap.join((a, b, c))


def card(rng: random.Random) -> str:
    first = rng.choice("34569")
    groups = [_digits(rng, 4, first), *(_digits(rng, 4) for _ in range(3))]
    if rng.random() < 0.15:
        groups[2] = "****"
    if rng.random() < 0.1:
        return f"37{_digits(rng, 2)}-{_digits(rng, 6)}-{_digits(rng, 5)}"
    gap = rng.choice(("-", "-", " ", "")) if "*" not in groups[2] else "-"
    return gap.join(groups)


def account(rng: random.Random) -> str:
    shape = rng.choice(
        ((3, 3, 6), (3, 2, 6), (6, 2, 6), (4, 3, 6), (3, 6, 5), (3, 4, 4, 2), (4, 2, 7), (4, 4, 4))
    )
    groups = [_digits(rng, n, "123456789") for n in shape]
    number = rng.choice(("-", "-", "-", "", " ")).join(groups)
    if "-" in number and rng.random() < 0.5:
        return number
    bank = rng.choice(BANKS)
    return rng.choice((f"{bank} {number}", f"{bank}계좌: {number}", f"{number} {bank}"))


def email(rng: random.Random) -> str:
    at = rng.choice(("@", "@", "@", " @ ", "[at]", "(at)", "골뱅이"))
    return rng.choice(NAMES) + rng.choice(("", _digits(rng, 2))) + at + rng.choice(HOSTS)


def handle(rng: random.Random) -> str:
    return "@" + rng.choice(HANDLES)


KINDS: dict[str, Callable[[random.Random], str]] = {
    "resident": resident,
    "phone": phone,
    "card": card,
    "account": account,
    "email": email,
    "handle": handle,
}

FRAMES = (
    "제 번호는 {}입니다.",
    "연락은 {} 로 주세요",
    "{}",
    "억울해서 글을 올립니다. {} 꼭 확인 부탁드립니다!",
    "2019년 8월 15일에 {}, 이렇게 남겼습니다.",
    "문의: {}\n감사합니다",
    "({}) 이 사람을 처벌해 주세요",
    "담당자({})에게 3번이나 물었지만 답이 없었습니다",
    "홍길동 {}",
    "'{}'라고 적혀 있었습니다",
    "{}으로 연락이 왔고 50,000원을 요구했습니다",
)


def personal(seed: int, count: int) -> Iterator[tuple[str, str, str]]:
    """(kind, text, what must not survive in it)."""
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.choice(tuple(KINDS))
        piece = KINDS[kind](rng)
        if rng.random() < 0.15:
            piece = piece.translate(FULL)
        yield kind, rng.choice(FRAMES).format(piece), piece


def decoy(rng: random.Random) -> str:
    """Something with digits or an @ that is nobody's data."""
    year, month, day = rng.randint(1900, 2029), rng.randint(1, 12), rng.randint(1, 28)
    number = rng.randint(1, 10 ** rng.randint(3, 12))
    hour, minute = rng.randint(0, 23), rng.randint(0, 59)
    return rng.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{year}.{month}.{day}.",
            f"{year}년 {month}월 {day}일",
            f"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:07+09:00",
            f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}:59",
            f"{year}{month:02}{day:02}",
            f"{year}{month:02}{day:02}{hour:02}{minute:02}00",
            f"{year % 100:02}{month:02}{day:02}",
            f"{year}-{year + 4}",
            f"{year}~{year + 30}년",
            f"{year} {year + 1} {year + 2} {year + 3}",
            f"{year}-{year + 1}-{year + 2}-{year + 3}",
            f"{number:,}원",
            f"{number}원",
            f"{number:,}명",
            f"약 {number % 1000}억 {number % 997}만 원",
            f"{number % 100}.{number % 89}%",
            f"제{number % 300}조 제{number % 9}항",
            f"법률 제{number % 20000}호",
            f"제{year}-{number % 9999}호",
            f"{year}가합{number % 99999}",
            f"헌재 {year}. {month}. {day}. {year}헌바{number % 300}",
            f"의안번호 {2000000 + number % 99999}",
            f"청원기간 {year - 1}-{month:02}-{day:02}~{year}-{month:02}-{day:02}",
            f"사업자등록번호 {_digits(rng, 3)}-{_digits(rng, 2)}-{_digits(rng, 5)}",
            f"ISBN 978-89-{_digits(rng, 4)}-{_digits(rng, 3)}-{_digits(rng, 1)}",
            f"고객센터 15{rng.choice(('44', '66', '77', '88', '99'))}-{_digits(rng, 4)}",
            f"{number % 9}-{number % 7} 승리, 3-0 패배",
            f"{_digits(rng, 3)}-{_digits(rng, 2)}번지",
            f"우편번호 {_digits(rng, 5)}",
            f"참여인원 {number:,} / 200,000",
            f"0.{_digits(rng, 11)}",
            f"3.{_digits(rng, 14)}",
            f"{number % 24}:{minute:02}~{hour:02}:{minute:02}",
            f"버전 {number % 9}.{number % 11}.{number % 13}",
            f"개당 @ {number % 9000}원",
            f"{hour}시 {minute}분 {number % 60}초",
            f"{_digits(rng, 2, '123')}도 {number % 60}분, {_digits(rng, 3, '1')}.{_digits(rng, 6)}",
            f"1. {year}년 2. {year + 1}년 3. {year + 2}년",
            f"{number % 100}평 {number % 30}층 {number % 2000}호",
            "112, 119, 1339",
            "코로나19 KF94 5G LTE 4K",
        )
    )


def decoys(seed: int, count: int) -> Iterator[str]:
    """Texts in which nothing may be masked."""
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.choice(FRAMES).format(decoy(rng))
