"""Words and sentences of `grammar_board`; `§` is where the piece stands."""

from phrases import phrases

DATA = phrases("frames_board")

OPENING = DATA["OPENING"]
CLOSING = DATA["CLOSING"]
SURNAMES = "김이박최정강조윤장임한오서신권황안송류홍"
GIVEN = (
    "민수", "지영", "현우", "서연", "미경", "도윤", "영숙", "태호", "은정", "상철", "하늘", "순자",
)  # fmt: skip
AREAS = (
    "02", "031", "032", "033", "041", "042", "043", "051", "052", "053", "055", "062", "064",
)  # fmt: skip
TELLING = DATA["TELLING"]
IDENTITY = DATA["IDENTITY"]
FOREIGN = DATA["FOREIGN"]
PAYING = DATA["PAYING"]
BANKS = DATA["BANKS"]
SENDING = DATA["SENDING"]
HOSTS = DATA["HOSTS"]
WRITING = DATA["WRITING"]
SYLLABLES = (
    "min", "ji", "hyun", "sun", "love", "kim", "park", "lee", "star", "moon", "dong", "su", "sky",
    "ha", "jin", "woo", "cho", "blue", "baby", "rkd", "dlwl", "qkr", "happy", "mom",
)  # fmt: skip
TALKING = DATA["TALKING"]
CALLING = (
    "텔레 §", "텔레그램 §", "인스타 §", "§ 님 말씀에 동의합니다", "§ 팔로우 해주세요", "디엠 §",
    "트위터 §", "§", "유튜브 § 구독", "§ 너도 참여해", "출처 §", "사진은 § 에서",
)  # fmt: skip
ATS = (
    "@", "@", "골뱅이", " 골뱅이 ", "[at]", "(at)", " at ", " [at] ", "(골뱅이)", "＠", " @ ", "@ ",
    "{at}", "<at>", "앳", " (at) ", "[골뱅이]", "_at_", "(a)",
)  # fmt: skip
