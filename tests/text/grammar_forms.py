"""Personal data in forms, chats copied out, notices, and talk written down; the sixth style.

Written in one go after the mask was mended for the fifth style, by somebody who had read its rules
by then, and before the mask saw it. The mask has never been mended for it: what it misses is what
to expect of the next style, so that nothing here may be used to write a rule. In a line `«p»` is a
piece: `#` a digit, `%` a digit said in Hangul, `¤` the name of a bank, `§` that of a person, `L` a
login, `@` the sex of a foreigner. `positives` and `negatives` are those of the other styles.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from phrases import phrases

DATA = phrases("grammar_forms")

Piece = tuple[str, str, str, str]
NAMES = ("김영희", "박철수", "이은주", "최민호", "정다은", "강병수", "오세라", "문지후")
BANKS = (
    "국민은행", "신한", "우리은행", "하나은행", "농협", "카카오뱅크", "토스뱅크", "기업은행",
    "우체국", "새마을금고", "SC제일은행", "부산은행", "수협은행", "KB", "광주은행",
)  # fmt: skip
WORDS = DATA["WORDS"]
FILLERS = DATA["FILLERS"]
CLOSERS = DATA["CLOSERS"]

PHONE = "\n".join(DATA["PHONE"])
RESIDENT = """
생년월일/성별 «######-#»
주민등록번호: «######-#######»
주민번호 «######-#******»
§ «######-#######» 세대주
(주민) «###### - #######»
피보험자 §, «#############»
외국인등록번호 «######-@######»
ARC No. «######-@######»
여권 말고 등록증 «######-@######»
고소인 § (주민등록번호 «######-#######»)
주민번호 앞은 «######고 뒤는 #######»
"ssn": "«######-#######»"
주민등록번호 «###### #######»
"""
CARD = """
카드번호 «####-####-####-####» 유효기간 확인
[신한체크승인] «####-##**-****-####»
결제수단: 국민카드(«####-****-****-####»)
"card": "«################»"
카드 «#### #### #### ####»로 결제했는데 환불이 안 돼요
현대카드 «####-####-####-####» §
카드앞면 «####.####.####.####»
카드사에 «#### #### **** ####» 불러드렸어요
카드 번호 불러드릴게요 «%%%% %%%% %%%% %%%%»
"""
ACCOUNT = """
입금자명 § / 계좌 ¤ «###-######-#####»
¤ «######-##-######» 예금주 §
회비는 ¤ «###-###-######»로 보내주세요
¤ «############» (§)
«###-####-####-##» ¤ §
부의금 계좌: ¤ «###-##-######» §
환불계좌 ¤ § «##############»
¤ 통장 «####-##-#######» 이걸로
1인당 2만원 ¤ «####-###-######» §
계좌번호: «###-######-##-###»
조의금 보내실 분 ¤/«###-##-####-###»/§
¤ 계좌번호 «###-######-#####»
"""
EMAIL = """
E-mail: «L@naver.com»
메일주소 «L@gmail.com»
"email": "«L@company.co.kr»"
«L골뱅이naver.com»으로
과제는 «L@snu.ac.kr» 제출
«L (at) gmail.com»
문의: «L[at]kaist.ac.kr»
«L @ daum.net»
«L골뱅이 네이버»로 보내시면
네이버 메일이에요 «L@naver.com»
«L@hanmail.net»/§
mailto:«L@nate.com»
"""
HANDLE = """
카톡 ID: «L##»
오픈채팅 말고 카톡 «L_##»
인스타 «@L_##» 놀러오세요
인스타그램: «L.L»
텔레그램 «@L##» 로 주세요
«@L_L» 님이 회원님을 언급했습니다
라인아이디 «L##»
텔레 «L###»
카톡 추가해주세요 «L####»
디스코드 «L#####»
네이버 아이디 «L##» 쓰시는 분
트위터 계정 «@L##»
카카오톡아이디 «L##» 입니다
인스타 디엠주세요 «L_L##»
트위치 아이디 «L##»
"""
INNOCENT = "\n".join(DATA["INNOCENT"])


def _fill(rng: random.Random, text: str) -> str:
    drawn = {
        "#": lambda: rng.choice("0123456789"),
        "%": lambda: rng.choice("공일이삼사오육칠팔구"),
        "¤": lambda: rng.choice(BANKS),
        "§": lambda: rng.choice(NAMES),
        "L": lambda: rng.choice(WORDS) + rng.choice(WORDS) + rng.choice(("", "", "7", "88")),
    }
    return "".join(drawn[letter]() if letter in drawn else letter for letter in text)


def _number(rng: random.Random, kind: str, piece: str) -> str:
    """A piece that could be one: a day and sex in front, a card's first digit, a said 010."""
    if kind == "resident":
        front = f"{rng.randint(50, 99)}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"
        sex = rng.choice("12")
        at = next((i for i in range(6, len(piece)) if piece[i] in "#@"), len(piece))
        if piece[at : at + 1] == "@":
            sex = rng.choice("56")
        return front + piece[6:at] + sex + _fill(rng, piece[at + 1 :])
    filled = _fill(rng, piece)
    if kind == "card":
        lead = rng.choice("459")
        return (SAID[lead] if piece[0] == "%" else lead) + filled[1:]
    if piece.startswith("%%%-"):
        return "공일공" + filled[3:]
    if piece.startswith("01#"):
        return rng.choice(("011", "016", "019")) + filled[3:]
    return filled


SAID = {"4": "사", "5": "오", "9": "구"}
LINES = {
    "phone": PHONE, "resident": RESIDENT, "card": CARD, "account": ACCOUNT, "email": EMAIL,
    "handle": HANDLE,
}  # fmt: skip
KINDS = tuple(LINES)


def _plain(rng: random.Random, text: str) -> str:
    """Banks, names and digits drawn; Latin letters of the line stay."""
    return "".join(_fill(rng, letter) if letter in "¤§#" else letter for letter in text)


def _drawn(rng: random.Random, kind: str) -> Piece:
    before, rest = rng.choice([line for line in LINES[kind].splitlines() if line]).split("«")
    piece, behind = rest.split("»")
    before, behind = rng.choice(FILLERS) + _plain(rng, before), _plain(rng, behind)
    return kind, before, _number(rng, kind, piece), behind + rng.choice(CLOSERS)


def positives(seed: int, count: int) -> Iterator[Piece]:
    """`count` pieces, the kinds in turn."""
    rng = random.Random(seed)
    for i in range(count):
        yield _drawn(rng, KINDS[i % len(KINDS)])


def negatives(seed: int, count: int) -> Iterator[str]:
    """`count` innocent texts."""
    rng = random.Random(seed)
    lines = [line for line in INNOCENT.splitlines() if line]
    for _ in range(count):
        yield rng.choice(FILLERS) + _plain(rng, rng.choice(lines)) + rng.choice(CLOSERS)
