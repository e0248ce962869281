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

Piece = tuple[str, str, str, str]
NAMES = ("김영희", "박철수", "이은주", "최민호", "정다은", "강병수", "오세라", "문지후")
BANKS = (
    "국민은행", "신한", "우리은행", "하나은행", "농협", "카카오뱅크", "토스뱅크", "기업은행",
    "우체국", "새마을금고", "SC제일은행", "부산은행", "수협은행", "KB", "광주은행",
)  # fmt: skip
WORDS = (
    "coffee",
    "dal",
    "bada",
    "rain",
    "sori",
    "jj",
    "mk",
    "yuna",
    "tiger",
    "note",
    "seo",
    "haru",
)
FILLERS = (
    "",
    "",
    "",
    "네네 ",
    "[김영희] [오후 3:12] ",
    "- ",
    "1) ",
    "아 그리고 ",
    "Q. ",
    "> ",
    "확인했습니다. ",
)
CLOSERS = (
    "",
    "",
    "",
    " 입니다.",
    " 이요",
    "요~",
    " 맞나요?",
    "\n감사합니다.",
    " (끝)",
    ", 확인 바랍니다",
)

PHONE = """
성명: § / 연락처: «010-####-####»
이름 § 전화 «010 #### ####» 인원 3명
§님 «010-####-####» 3시 예약
비상연락망 §(부) «010.####.####»
"phone": "«010########»"
§ | «010-####-####» | 참석
전화로만 받아요 «02-###-####»
사무실은 «(02) ###-####»이고 점심시간엔 안 받아요
«031)###-####» 경비실
팩스 말고 «070-####-####»로
번호가 «%%%-%%%%-%%%%»래요
«공일공 #### ####» 여기로 문자
저장해두세요 «공일공 %%%% %%%%»
엄마 번호 «010 - #### - ####»
call me at «+82-10-####-####»
«+82 10 #### ####» from Korea
«8210########»
배달기사님 안심번호 «0504-####-####»
«0507-####-####» 예약 문의
제 폰은 «010/####/####» 이거예요
«01#-###-####» 옛날 번호 그대로 써요
수신자 «O1O-####-####» 발신 제한
문자왔어요 보낸사람 «010####-####»
«010-####-%%%%» 사칭 조심
잃어버린 강아지 찾아요 사례금 30만원 «010_####_####»
"""
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
INNOCENT = """
접수번호: 2020-######
§님 3시 #명 예약
참가비 ##,###원 × #명 = ###,###원
결제금액 ##,###원 (할부 0#개월)
[신한체크승인] ##,###원 06/1# 12:## 스타벅스
누적 #,###,###원 잔액 ###,###원
"price": ####0, "stock": ###
"date": "2020-03-1#T10:##:##"
유효기간 0#/2# 지났어요
2020.03.1#(화) 14:##~16:## 3층 회의실
교육과정 ##기 모집 (### 시간)
고유번호증 ###-82-#####
송장 ####-####-####
택배조회 ############ 안 떠요
1588-#### 상담원 연결
국번없이 1##
대표전화 15##-####
ISBN 978-89-####-###-#
¤ 금리 #.##% 적금 ##만원
¤ 채용 ##명 경쟁률 ###:1
¤ ##,###,###원 대출
¤ 앱 #.#.# 업데이트
카드 혜택 ##% 할인 최대 ##,###원
카드 명세서 2020년 0#월 ###,###원
카톡 단톡방 ###명
카톡 Mac 버전 #.#.#
인스타 좋아요 #,###개
텔레그램 방 ##개 폐쇄
인스타 스토리 24시간
아이디어 공모 ##건
이메일 ##통 안 읽음
골뱅이 ##개 세트
학번 2020##### 수강신청
수험번호 ####### 합격
층수 ##/## 전용 ##.##㎡ 매매 #억 #,###
차량 ##거 #### 주차 위반
신호등 ##초 대기 ###m
경도 12#.##### 위도 3#.#####
A#-#### 도면 rev.#
KS X #### 표준
GS25 ##점 CU ##점
2013~2020 시즌 ###경기 ##골
체중 ##.#kg → ##.#kg, 혈당 ###-###
전화 ##통화 ###문자
버스 ###-# 6##번 환승
주소 ##길 ##-# ###호
제####차 회의 안건 ##호
헌법 제##조 ##항, 2016헌나#
사건 2019고합####
총 ###,###표 중 ##,###표 무효
확진 #,###명 (+###)
일이 칠팔 개월 걸렸어요
이 일 저 일 오육 년 했습니다
구일일 테러 이천일 년
포트 ####, ###.###.#.## 접속
커밋 a1b2c3d v#.#.#-rc#
"""


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
