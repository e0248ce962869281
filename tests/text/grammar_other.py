"""A second way to write personal data and decoys, kept for judging only: chats, market adverts,
court papers, signatures of mails, forms. Same contract as `grammar`."""

from __future__ import annotations

import random
from collections.abc import Iterator

from phrases import phrases

DATA = phrases("grammar_other")

FAMILY = ("김", "이", "박", "최", "정", "강", "조", "윤")
GIVEN = ("민준", "서연", "도윤", "하은", "지호", "수빈", "영희", "철수")
WORDS = ("sunny", "tiger", "bluesky", "korea", "mono", "cheolsu", "younghee", "dev", "shop", "king")
SITES = DATA["SITES"]


class Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def n(self, pattern: str) -> str:
        """'#' becomes a figure, '1' to '9' stay."""
        return "".join(self.rng.choice("0123456789") if c == "#" else c for c in pattern)

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def who(self) -> str:
        return self.pick(*FAMILY) + self.pick(*GIVEN)

    def login(self) -> str:
        parts = self.rng.sample(WORDS, 2)
        return self.pick(*"._-", "").join(parts) + self.pick("", self.n("##"), self.n("19##"))

    def resident(self) -> tuple[str, str, str]:
        birth = (
            f"{self.rng.randint(0, 99):02}{self.rng.randint(1, 12):02}{self.rng.randint(1, 28):02}"
        )
        tail = self.pick("1", "2", "3", "4", "5", "6") + self.n("######")
        if self.rng.random() < 0.25:
            tail = tail[0] + "*" * 6
        number = birth + self.pick("-", "-", "-", " - ", "", "−") + tail
        label = self.pick(
            "주민등록번호: ",
            "주민번호 ",
            "외국인등록번호 : ",
            "피고인 " + self.who() + " (",
            "생년월일/",
            "",
        )
        return (
            label,
            number,
            ")" if label.endswith("(") else self.pick("", ", 회사원", " 본적 서울"),
        )

    def phone(self) -> tuple[str, str, str]:
        pattern = self.pick(
            "010-####-####",
            "010-####-####",
            "010-####-####",
            "010########",
            "010 #### ####",
            "010.####.####",
            "011-###-####",
            "016-####-####",
            "02-3##-####",
            "02-2###-####",
            "(02)5##-####",
            "031-7##-####",
            "051-###-####",
            "070-7###-####",
            "0505-###-####",
            "062)3##-####",
            "+82-10-####-####",
            "+82 10 #### ####",
            "+8210########",
            "82-2-7##-####",
            "010 - #### - ####",
            "010ㅡ####ㅡ####",
            "010~####~####",
            "공일공-####-####",
            "0507-13##-####",
            "O10-####-####",
            "010/####/####",
        )
        number = self.n(pattern)
        label = self.pick(
            "☎ ",
            "T. ",
            "H.P ",
            "hp: ",
            "전화)",
            "문자주세요 ",
            "연락처:",
            self.who() + " ",
            "Tel ",
            "",
        )
        return (
            label,
            number,
            self.pick("", " (문자만)", "로 톡주세요", "/" + self.who(), "번으로", " 아무때나"),
        )

    def card(self) -> tuple[str, str, str]:
        number = self.n(
            self.pick(
                "4###-####-####-####",
                "5###-####-####-####",
                "9### #### #### ####",
                "4###############",
                "5###-####-****-####",
                "3762-######-#####",
                "6250-####-####-####",
                "9###-##**-****-####",
            )
        )
        return (
            self.pick("카드번호 ", "신용카드 ", "결제카드: ", ""),
            number,
            self.pick("", " 유효기간 12/25", " 일시불", "로 결제했는데"),
        )

    def account(self) -> tuple[str, str, str]:
        bank, pattern = self.rng.choice(
            (
                ("국민", "######-##-######"),
                ("신한", "110-###-######"),
                ("우리", "1002-###-######"),
                ("하나", "###-######-#####"),
                ("농협", "302-####-####-#1"),
                ("농협", "3############"),
                ("카뱅", "3333-##-#######"),
                ("카카오뱅크", "3333#########"),
                ("토스", "1000-####-####"),
                ("기업", "###-######-##-###"),
                ("우체국", "######-##-######"),
                ("새마을금고", "9002-####-####-#"),
                ("SC제일", "###-##-######"),
                ("국민", "##############"),
                ("씨티", "###-#####-###"),
            )
        )
        number = self.n(pattern)
        if self.rng.random() < 0.5:
            return f"{bank} ", number, " 예금주 " + self.who()
        if "-" in number and self.rng.random() < 0.5:
            return (
                self.pick("입금은 ", "여기로 보내세요 ", "환불계좌 "),
                number,
                self.pick(" " + self.who(), ""),
            )
        return f"{bank}은행 ", number, self.pick("", "로 이체")

    def email(self) -> tuple[str, str, str]:
        site = self.pick(*SITES[:-1])
        at = self.pick("@", "@", "@", "@", " @ ", "골뱅이", " at ", "(at)", "[골뱅이]")
        if at in (" at ", "(at)") and self.rng.random() < 0.4:
            site = site.replace(".", " dot ")
        return (
            self.pick("E-mail: ", "메일주소는 ", "이력서는 ", "<", ""),
            self.login() + at + site,
            self.pick("", "으로 보내세요", " 까지"),
        )

    def handle(self) -> tuple[str, str, str]:
        if self.rng.random() < 0.65:
            return (
                self.pick("RT ", "via ", "ㄴ ", ".", "(cc. "),
                "@" + self.login().replace("-", "_"),
                self.pick(" ㅋㅋ", "님 글 봤어요", ")", ":"),
            )
        login = self.login().replace("-", "_")
        return (
            self.pick(
                "카톡아이디 ", "카톡 id ", "텔레그램 ID : ", "라인 아이디 ", "인스타 아이디는 "
            ),
            login,
            self.pick(" 추가요", " 로 연락", ""),
        )

    def decoy(self) -> str:
        year = self.rng.randint(1945, 2027)
        month, day = self.rng.randint(1, 12), self.rng.randint(1, 31)
        return self.pick(
            f"{year}.{month:02}.{day:02}(월)",
            f"'{year % 100:02}.{month}.{day}",
            f"{month}/{day} {self.n('1#')}:30",
            f"{year}-{month:02}",
            f"{year}년도 {month}/4분기",
            f"{self.n('1,###,###')}원",
            f"{self.n('2#####')}원",
            f"{self.n('1########')}원 배상하라",
            f"총 {self.n('3####')}표 중 {self.n('1####')}표",
            f"{self.n('##.##')}% 득표",
            f"사건번호 {year}다{self.n('######')}",
            f"대법원 {year}. {month}. {day}. 선고 {year}도{self.n('####')}",
            f"형법 제{self.n('3##')}조의{self.n('#')}",
            f"조례 제{self.n('####')}호",
            f"{self.n('1#:0#:5#')} 기록 경신",
            f"주문번호: {self.n('2019##########')}",
            f"예약번호 {self.n('########')}",
            f"운송장번호 {self.n('6###########')}",
            f"송장 {self.n('5###-####-####')}",
            f"모델명 SM-{self.n('G9##')}N",
            f"S/N {self.n('R3#A####')}",
            f"ISBN {self.n('979-11-####-###-#')}",
            f"ISBN: {self.n('9788#########')}",
            f"제품코드 {self.n('8801#########')}",
            f"사업자 {self.n('###-##-#####')}",
            f"통신판매업신고 제{year}-서울강남-{self.n('0####')}호",
            f"대표번호 {self.n('1588-####')}",
            f"☎{self.n('1661-####')}",
            f"조회수 {self.n('1,###,###')}",
            f"좋아요 {self.n('12####')}개",
            f"{self.n('3#')}-{self.n('2#')}, {self.n('25')}-{self.n('1#')} 세트 승",
            f"{self.n('1#')}:{self.n('#')} 완승",
            f"서울 강남구 테헤란로 {self.n('1##')}-{self.n('##')}",
            f"{self.n('10#')}동 {self.n('12##')}호",
            f"위도 {self.n('37.######')} 경도 {self.n('127.######')}",
            f"{self.n('5##')}나노, {self.n('12#')}dB",
            f"{self.n('192.168.#.1##')}",
            f"{year}~{year + 3} {year + 4}~{year + 7}",
            "1 2 3 4 5 6 7 8 9 10",
            f"로또 {self.n('3')} {self.n('1#')} {self.n('2#')} {self.n('3#')} {self.n('4#')} 45",
            "원주율 3.14159265358979",
            "2^64 = 18446744073709551616",
            f"@ {self.n('3###')}원씩",
            f"자본금 {self.n('5###')}억 {self.n('3###')}만원",
            f"도수 {self.n('-#.##')} / {self.n('-#.##')}",
            f"채권 {self.n('KR60########')}",
            f"{self.n('0#')}시~{self.n('1#')}시",
            "C++17, Python 3.11.4",
        )


KINDS = ("resident", "phone", "card", "account", "email", "handle")
FRAMES = DATA["FRAMES"]


def positives(seed: int, count: int) -> Iterator[tuple[str, str, str, str]]:
    writer = Writer(seed)
    for _ in range(count):
        kind = writer.pick(*KINDS)
        front, piece, back = getattr(writer, kind)()
        before, behind = writer.rng.choice(FRAMES)
        yield kind, before + front, piece, back + behind


def negatives(seed: int, count: int) -> Iterator[str]:
    writer = Writer(seed)
    for _ in range(count):
        before, behind = writer.rng.choice(FRAMES)
        yield before + writer.decoy() + behind
