"""Personal data composed freely: a writing for each digit group, a label, a frame; and look-alikes.

The fourth style. Nothing is a fixed line: numbers, separators, digit writings (plain, full-width,
circled, said, half said), labels before and behind, and the sentences around are drawn one by one.
The look-alikes are numbers that live in the same comments and petitions: dates, prices, law and
court numbers, parcels, products, addresses of machines and of houses, scores, figures said aloud.

`positives` yields (kind, text before, piece, text behind); `negatives` texts that have to stay.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from phrases import phrases

DATA = phrases("grammar_composed")

SAID = "공일이삼사오육칠팔구"
FULL = "０１２３４５６７８９"
CIRCLED = "⓪①②③④⑤⑥⑦⑧⑨"

SEPARATORS = ("-", "-", "-", "-", " ", " ", ".", " - ", "–", "ㅡ", "~", "_", "/", "·", "− ", ", ")
SAID_ALOUD = (" 다시 ", "다시 ", "에 ", " 에 ", " ", "-", "")

BEFORE = DATA["BEFORE"]
BEHIND = DATA["BEHIND"]

Piece = tuple[str, str, str, str]


def _pick(rng: random.Random, options: tuple[str, ...]) -> str:
    return options[rng.randrange(len(options))]


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


def _some(rng: random.Random, digits: str, table: str, share: float) -> str:
    """`digits` with a share of them written as `table` has them."""
    return "".join(table[int(c)] if c.isdigit() and rng.random() < share else c for c in digits)


def _written(rng: random.Random, groups: list[str]) -> str:
    """Digit groups as somebody writes them."""
    way = rng.random()
    sep = _pick(rng, SEPARATORS)
    if way < 0.50:
        return sep.join(groups)
    if way < 0.60:
        return "".join(groups)
    if way < 0.68:
        return _pick(rng, ("－", "-", " ", "．")).join(_some(rng, g, FULL, 1) for g in groups)
    if way < 0.71:
        return _pick(rng, ("-", " ", "")).join(_some(rng, g, CIRCLED, 1) for g in groups)
    if way < 0.79:
        return _pick(rng, SAID_ALOUD).join(_some(rng, g, SAID, 1) for g in groups)
    if way < 0.84:  # the first group said
        return _pick(rng, SAID_ALOUD[:-1]).join([_some(rng, groups[0], SAID, 1), *groups[1:]])
    if way < 0.88:  # one group of many said
        at = rng.randrange(len(groups))
        return "-".join(_some(rng, g, SAID, 1) if i == at else g for i, g in enumerate(groups))
    if way < 0.91:  # some digits said, to escape filters
        return sep.join(_some(rng, g, SAID, 0.4) for g in groups)
    if way < 0.94:  # letters for digits
        return sep.join(groups).replace("0", "O").replace("1", rng.choice("lI1"))
    if way < 0.96:
        return " ".join("".join(groups))
    if way < 0.98:
        return f"({groups[0]})" + sep.join(groups[1:])
    return ("  ", " -", "- ")[rng.randrange(3)].join(groups)


# ------------------------------------------------------------------------------------- personal


def _phone(rng: random.Random) -> Piece:
    draw = rng.random()
    if draw < 0.72:
        groups = ["010", rng.choice("23456789") + _digits(rng, 3), _digits(rng, 4)]
    elif draw < 0.80:
        groups = [rng.choice(("011", "016", "017", "018", "019")), "3" + _digits(rng, 2)]
        groups.append(_digits(rng, 4))
    elif draw < 0.90:
        area = rng.choice(("02", "031", "032", "042", "051", "053", "062", "064"))
        groups = [area, rng.choice("23456789") + _digits(rng, 2), _digits(rng, 4)]
    elif draw < 0.95:
        groups = ["070", rng.choice("4578") + _digits(rng, 3), _digits(rng, 4)]
    else:
        groups = [rng.choice(("0502", "0504", "0507")), _digits(rng, 4), _digits(rng, 4)]
    label = ("", "", "폰 ", "전번: ", "연락처 : ", "☎ ", "📞", "H.P ", "HP) ", "T. ", "M. ")
    more = ("문자는 ", "번호 남겨요 ", "휴대폰번호는 ", "핸펀 ", "ㅈㅎ번호 ", "tel) ", "전화 ")
    behind = ("", "", "", " (문자만)", "(김과장)", "번", " 24시", " 문의", " 카톡가능")
    return "phone", _pick(rng, label + more), _written(rng, groups), _pick(rng, behind)


def _resident(rng: random.Random) -> Piece:
    birth = f"{rng.randrange(40, 100):02}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}"
    rest = rng.choice("12125678") + _digits(rng, 6)
    label = (
        "",
        "주민번호 ",
        "주민등록번호: ",
        "주번 ",
        "민증번호는 ",
        "외국인등록번호 ",
        "(주민) ",
    )
    draw = rng.random()
    if draw < 0.10:
        piece = f"{birth}-{rest[0]}" + rng.choice("*xX●○■") * 6
    elif draw < 0.16:
        piece = f"앞자리 {birth} 뒷자리 {rest}"
    elif draw < 0.20:
        piece = f"{birth} / {rest}"
    else:
        piece = _written(rng, [birth, rest])
    return "resident", _pick(rng, label), piece, _pick(rng, ("", "", "", " (본인)", " 홍*동"))


def _card(rng: random.Random) -> Piece:
    first = rng.choice(("4", "5", "9", "6", "3")) + _digits(rng, 3)
    first = "5" + first[1:] if first[0] == "3" else first
    groups = [first, *(_digits(rng, 4) for _ in range(3))]
    if rng.random() < 0.12:
        star = rng.choice("*xX")
        groups[1], groups[2] = groups[1][:2] + star * 2, star * 4
        piece = rng.choice("- ").join(groups)
    else:
        piece = _written(rng, groups)
    label = (
        "",
        "카드번호 ",
        "카드 번호: ",
        "신용카드 ",
        "체크카드번호는 ",
        "삼성카드 ",
        "제 카드 ",
    )
    return "card", _pick(rng, label), piece, _pick(rng, ("", "", " 분실", " 결제 취소"))


BANKS = DATA["BANKS"]


def _account(rng: random.Random) -> Piece:
    bank = _pick(rng, tuple(BANKS))
    groups = [_digits(rng, int(size)) for size in BANKS[bank].split("-")]
    groups[0] = rng.choice("1356") + groups[0][1:]
    sep = rng.choice(("-", "-", "-", "", "", " ", ".", " - ", "ㅡ", "_"))
    piece = sep.join(groups)
    draw = rng.random()
    if draw < 0.08:
        piece = _some(rng, piece, FULL, 1)
    before = _pick(rng, (f"{bank} ", f"{bank}", f"{bank} : ", f"계좌번호 {bank} ", f"{bank}) "))
    behind = _pick(rng, ("", " 홍길동", " 예금주 김철수", "(박영희)", " 으로 입금"))
    if draw > 0.85:
        behind = _pick(rng, (f" {bank}", f" ({bank})", f"({bank} 김철수)", f" / {bank}"))
        before = _pick(rng, ("", "계좌 ", "후원계좌: ", "입금은 "))
    elif draw > 0.75:
        before = _pick(rng, ("계좌번호 ", "후원계좌 ", "입금계좌: ", "보내실 곳 계좌 "))
    return "account", before, piece, behind


def _name(rng: random.Random) -> str:
    word = rng.choice(("minsu", "jiwon", "happy", "sky", "love", "kim", "seoul", "apple", "dkdlel"))
    tail = rng.choice(
        (
            _digits(rng, 2),
            _digits(rng, 4),
            "_" + _digits(rng, 2),
            ".k",
            "_j",
            "-x" + _digits(rng, 1),
        )
    )
    return word + tail


def _email(rng: random.Random) -> Piece:
    name = _name(rng)
    site, hangul = rng.choice(
        (
            ("naver.com", "네이버"),
            ("gmail.com", "지메일"),
            ("hanmail.net", "한메일"),
            ("daum.net", "다음"),
            ("nate.com", "네이트"),
            ("kakao.com", "카카오"),
        )
    )
    host, _, top = site.partition(".")
    forms = (
        f"{name}@{site}",
        f"{name}@{site}",
        f"{name}@{site}",
        f"{name} @ {site}",
        f"{name}＠{site}",
        f"{name}@{host}. {top}",
        f"{name}@{host},{top}",
        f"{name}@{host}",
        f"{name}골뱅이{hangul}",
        f"{name} 골뱅이 {hangul}",
        f"{name} 골뱅이 {site}",
        f"{name}골뱅이{host} 닷 {top}",
        f"{name}(at){site}",
        f"{name}[at]{site}",
        f"{name} at {site}",
        f"{name} at {host} dot {top}",
        f"{name}(골뱅이){site}",
        f"{name}@{hangul}",
        f"{name.upper()}@{site.upper()}",
        f"{name}#{site}",
        f"{name}앳{host}닷{top}",
    )
    label = ("", "", "메일 ", "이메일: ", "e-mail ", "제보는 ", "자료는 ", "mail) ")
    return "email", _pick(rng, label), _pick(rng, forms), _pick(rng, ("", "", " 제보", "로 회신"))


def _handle(rng: random.Random) -> Piece:
    name = _name(rng).replace("-", "_")
    draw = rng.random()
    if draw < 0.15:
        game = rng.choice(("디코 ", "디스코드 ", "배틀넷 ", "롤 닉 ", ""))
        return "handle", game, f"{name.replace('.', '')}#{rng.randrange(2100, 9999)}", ""
    if draw < 0.40:
        place = ("인스타 ", "트위터 ", "텔레그램 ", "", "틱톡 ", "유튜브 ", "insta ", "텔레 ")
        return "handle", _pick(rng, place), f"@{name}", _pick(rng, ("", " 팔로우", " 디엠"))
    chat = _pick(
        rng,
        (
            "카톡",
            "카카오톡",
            "인스타",
            "텔레",
            "텔레그램",
            "라인",
            "위챗",
            "kakao",
            "트위터",
            "까톡",
        ),
    )
    how = _pick(
        rng,
        (
            " ",
            " 아이디 ",
            "아이디: ",
            " ID ",
            "ID:",
            " id : ",
            "은 ",
            ": ",
            " - ",
            " 추가 ",
            "친추 ",
        ),
    )
    if draw > 0.92:
        return "handle", "", name, f" {chat} 추가 " + _pick(rng, ("해주세요", "ㄱㄱ", "부탁"))
    return "handle", chat + how, name, _pick(rng, ("", " 추가", " 연락주세요"))


MAKERS: tuple[Callable[[random.Random], Piece], ...] = (
    _phone,
    _phone,
    _resident,
    _card,
    _account,
    _email,
    _handle,
)
KINDS = ("phone", "resident", "card", "account", "email", "handle")


def positives(seed: int, count: int) -> Iterator[Piece]:
    """`count` pieces, the kinds in turn."""
    rng = random.Random(seed)
    for i in range(count):
        kind, before, piece, behind = MAKERS[i % len(MAKERS)](rng)
        yield kind, _pick(rng, BEFORE) + before, piece, behind + _pick(rng, BEHIND)


# ----------------------------------------------------------------------------------- look-alikes


def _n(rng: random.Random, low: int, high: int) -> str:
    return str(rng.randrange(low, high))


def _date(rng: random.Random) -> str:
    y, m, d = rng.randrange(1995, 2027), rng.randrange(1, 13), rng.randrange(1, 29)
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    return _pick(
        rng,
        (
            f"{y}.{m:02}.{d:02}",
            f"{y}. {m}. {d}.",
            f"{y}-{m:02}-{d:02} {clock}",
            f"{y}-{m:02}-{d:02} ~ {y + 1}-{m:02}-{d:02}",
            f"{y}{m:02}{d:02}",
            f"{y % 100:02}.{m:02}.{d:02}~{y % 100:02}.12.31",
            f"{y}/{m}/{d} {clock}:{rng.randrange(60):02}",
            f"{y}년 {m}월 {d}일 {clock}",
            f"{y}{m:02}{d:02}{clock.replace(':', '')}",
            f"{y}-{y + 1}-{y + 2} 시즌",
        ),
    )


def _price(rng: random.Random) -> str:
    n = rng.randrange(10**4, 10**11)
    return _pick(
        rng,
        (f"{n:,}원", f"₩{n:,}", f"{n}원", f"{n // 10**4}만원", f"{n // 10**4:,}만 원", f"${n:,}"),
    )


def _law(rng: random.Random) -> str:
    a, b, y = _n(rng, 1, 400), _n(rng, 1, 9), _n(rng, 1998, 2026)
    mark = rng.choice(("고합", "고단", "헌바", "다", "나", "구합", "도", "가단"))
    return _pick(
        rng,
        (
            f"형법 제{a}조 제{b}항",
            f"{a}조의{b} {b}항 위반",
            f"{y}{mark}{_n(rng, 100, 999999)}",
            f"법률 제{_n(rng, 1000, 19999)}호",
            f"{y}형제{_n(rng, 1000, 99999)}호",
            f"의안번호 {_n(rng, 2000000, 2299999)}",
            f"사건번호 {y}-{_n(rng, 100000, 999999)}",
        ),
    )


def _order(rng: random.Random) -> str:
    day = f"20{rng.randrange(15, 26)}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}"
    return _pick(
        rng,
        (
            f"주문번호 {day}-{_digits(rng, 7)}",
            f"주문번호: {day}{_digits(rng, 8)}",
            f"송장번호 {_digits(rng, 4)}-{_digits(rng, 4)}-{_digits(rng, 4)}",
            f"운송장 {_digits(rng, 12)}",
            f"접수번호 1AA-{day[2:6]}-{_digits(rng, 7)}",
            f"예약번호 {rng.choice('ABCKX')}{_digits(rng, 8)}",
            f"문의번호 {_digits(rng, 6)}-{_digits(rng, 4)}",
            f"사업자등록번호 {_n(rng, 101, 899)}-{_n(rng, 10, 89)}-{_digits(rng, 5)}",
            f"통신판매업 신고번호 제{day[:4]}-서울강남-{_digits(rng, 5)}호",
        ),
    )


def _product(rng: random.Random) -> str:
    letters = "".join(rng.choice("ABCDGKLMNRSTWX") for _ in range(2))
    return _pick(
        rng,
        (
            f"{letters}-{rng.choice('GNAS')}{_n(rng, 900, 999)}N",
            f"{letters}{_digits(rng, 2)}T{_digits(rng, 4)}KW",
            f"모델명 {letters}85-{_digits(rng, 4)}-{_digits(rng, 4)}",
            f"부품번호 {_digits(rng, 5)}-{letters}{_digits(rng, 3)}",
            f"시리얼 {letters}{_digits(rng, 10)}",
            f"ISBN 979-11-{_digits(rng, 4)}-{_digits(rng, 3)}-{_digits(rng, 1)}",
            f"바코드 8809{_digits(rng, 9)}",
            f"버전 {_n(rng, 1, 20)}.{_n(rng, 0, 20)}.{_n(rng, 1000, 9999)}.{_n(rng, 0, 200)}",
            f"특허 10-{_n(rng, 1000000, 2500000)}",
            f"i7-{_n(rng, 6700, 13900)}K RTX {_n(rng, 2060, 4090)}",
        ),
    )


def _machine(rng: random.Random) -> str:
    ip = ".".join(_n(rng, 1, 255) for _ in range(4))
    return _pick(
        rng,
        (
            f"아이피 {ip}",
            f"{ip}:{_n(rng, 1000, 9999)} 접속",
            f"IP {ip} 추적",
            f"위도 {_n(rng, 33, 38)}.{_digits(rng, 6)}, 경도 {_n(rng, 126, 129)}.{_digits(rng, 6)}",
            f"{_n(rng, 1, 9)}.{_digits(rng, 10)}",
            f"해상도 {_n(rng, 1, 5)}{_digits(rng, 3)}x{_n(rng, 1000, 3000)}",
            f"에러코드 0x{_digits(rng, 8)}",
        ),
    )


def _place(rng: random.Random) -> str:
    return _pick(
        rng,
        (
            f"강남대로 {_n(rng, 1, 500)}-{_n(rng, 1, 60)} {_n(rng, 2, 25)}층",
            f"래미안 {_n(rng, 101, 130)}동 {_n(rng, 101, 2504)}호",
            f"우편번호 {_digits(rng, 5)}",
            f"(우){_n(rng, 100, 799)}-{_digits(rng, 3)}",
            f"{_n(rng, 1000, 9900)}-{_n(rng, 1, 9)}번 버스",
            f"산 {_n(rng, 1, 99)}-{_n(rng, 1, 99)}번지",
            f"국도 {_n(rng, 1, 99)}호선 {_n(rng, 1, 300)}.{_n(rng, 1, 9)}km",
        ),
    )


def _count(rng: random.Random) -> str:
    a, b = rng.randrange(1, 10**6), rng.randrange(10**6, 10**8)
    return _pick(
        rng,
        (
            f"{a:,}명 / {b:,}명",
            f"{_n(rng, 60, 130)}-{_n(rng, 60, 130)} 승리",
            f"{_n(rng, 0, 24):0>2}:00-{_n(rng, 0, 24):0>2}:30 운영",
            f"{a}번째 동의합니다",
            f"청원번호 {_n(rng, 100000, 700000)}",
            f"국민청원 {_n(rng, 1, 500)}호 {b}명 돌파",
            f"{_n(rng, 10, 99)}.{_digits(rng, 2)}% → {_n(rng, 10, 99)}.{_digits(rng, 2)}%",
            f"{_n(rng, 1, 9)}, {_n(rng, 10, 19)}, {_n(rng, 20, 29)}, 38, 40, 45 로또",
            f"{_n(rng, 1000, 2000)} {_n(rng, 1000, 2000)} {_n(rng, 1000, 2000)} 칼로리",
            f"{_n(rng, 2000, 2020)} {_n(rng, 2000, 2020)} {_n(rng, 2000, 2020)} 기출",
        ),
    )


def _hotline(rng: random.Random) -> str:
    return _pick(
        rng,
        (
            f"고객센터 {rng.choice(('1588', '1577', '1544', '1899', '1661'))}-{_digits(rng, 4)}",
            "국번없이 1345",
            "112 119 110 신고",
            "010 번호통합 반대",
            "011, 016, 017, 018, 019 사용자",
            "010으로 시작하는 번호",
            "국번 02 와 031 차이",
        ),
    )


SPOKEN = DATA["SPOKEN"]


def _spoken(rng: random.Random) -> str:
    return _pick(rng, SPOKEN)


INNOCENT: tuple[Callable[[random.Random], str], ...] = (
    _date,
    _price,
    _law,
    _order,
    _product,
    _machine,
    _place,
    _count,
    _hotline,
    _spoken,
)


def negatives(seed: int, count: int) -> Iterator[str]:
    """`count` innocent texts, the sorts in turn, one or two in each."""
    rng = random.Random(seed)
    for i in range(count):
        text = _pick(rng, BEFORE) + INNOCENT[i % len(INNOCENT)](rng)
        if rng.random() < 0.3:
            text += _pick(rng, (" ", ", ", " / ", "\n")) + rng.choice(INNOCENT)(rng)
        yield text + _pick(rng, BEHIND)
