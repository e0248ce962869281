"""Shapes of the names people go by in messengers and networks, as regular expressions.

A name tells itself by what stands beside it: a messenger, a word that asks to write there, a word
for name. With a digit or a line in it, it needs one of these; made of letters alone, it also has to
be none of the words that are said of messengers.
"""

from __future__ import annotations

_LATIN = r"(?<![A-Za-z])(?i:{})(?i: ?id)?(?![A-Za-z])"
_MESSENGER = (
    r"(?:카카오톡|카톡|까톡|갠톡|오톡|ㅋ[rR]톡|ㅋㅌ|ㅌㄹ|톡디|텔레|라인|위챗|디엠|친추|맞팔"
    r"|(?<![가-힣])[톡텔](?![가-힣])|(?<![가-힣])톡(?=아이디|아디|(?i:id)))"
)
_NETWORK = (
    r"(?:틱톡|텔레그램|인스타그램|인스타|트위터|디스코드|디코|스카이프|"
    + _LATIN.format("kakao(?:talk)?|wechat|dm(?!-)|telegram|insta(?:gram)?|discord|line")
    + ")"
)
CHAT = f"(?:{_NETWORK}|{_MESSENGER})"
_SITE = r"(?:페북|페이스북|네이버|다음|유튜브|트위치|오픈채팅|오픈톡|옾챗)"
NAMED = r"(?:아이디|아디|계정|(?<![A-Za-z])(?i:id)(?![A-Za-z]))"
_ASKS = (
    r"(?:주세요|주셔요|주시면|주삼|주셈|줘요|줘|남겨|보내|하세요|해요|해 ?주세요|걸어|친구 ?추가"
    r"|추가|친추|등록|문의|연락|상담|신청|환영|가능|검색|맞팔|선팔|팔로우|팔로|디엠|(?i:dm)|부탁|바람"
    r"|받아요)"
)
_VERSION = r"(?!(?i:v|ver)\.?[0-9])"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{3,29}"
_ODD_NAME = (
    rf"{_VERSION}(?=[A-Za-z0-9.-]{{0,29}}[0-9_]|[A-Za-z]{{2,20}}\.[A-Za-z])"
    rf"(?=[0-9_.-]{{0,29}}[A-Za-z]){_NAME}"
)
_SAID_OF_IT = (
    r"(?:reels?|stor(?:y|ies)|live|feeds?|highlights?|log(?:in|out)|updates?|themes?|emojis?"
    r"|emoticons?|stickers?|profiles?|hashtags?|filters?|messages?|messenger|channels?|premium"
    r"|music|videos?|photos?|groups?|chats?|servers?|desktop|windows?|android|iphone|ipad|mobile"
    r"|official|online|games?|talk|shop|store|webtoon|friends?|page|links?|open|test|error|beta"
    r"|lite|business|https?|naver|google|kakao(?:talk)?|line|instagram|facebook|twitter|youtube"
    r"|telegram|discord|wechat|password|follow(?:ers?|ing)?|like)"
)
_PLAIN_NAME = rf"(?!{_SAID_OF_IT}(?![a-z]))[a-z](?:\.?[a-z]){{3,19}}(?![A-Za-z0-9_])"
_MARK = r"(?: ?[-:=~!>./(\[]{1,2} ?| )"
_WHERE = r"(?:은|는|으?로만?)?"
_LINK = rf"{_WHERE}(?: ?{_ASKS}){{0,3}}(?: ?{NAMED}[은는]?)?{_MARK}"
_ASKED = rf"{_WHERE}(?:(?: ?{_ASKS}){{1,3}}(?: ?{NAMED}[은는]?)?| ?{NAMED}[은는]?){_MARK}"
_FRONT = r"(?<![A-Za-z0-9_.@-])"
_BEHIND = rf"(?=(?:으?로)? ?(?:\({CHAT}\)|{CHAT} ?(?:{_ASKS}|{NAMED})))"

CALLED = (
    r"(?<![A-Za-z0-9_.#])[A-Za-z][A-Za-z0-9_.]{2,31}#(?!(?:19|20)[0-9]{2})[0-9]{4}(?![0-9])",
    r"(?<![A-Za-z0-9@_])@(?:[A-Za-z_]|[0-9]{1,3}[A-Za-z_])[A-Za-z0-9_.]{1,29}",
    r"(?<![A-Za-z0-9@_가-힣])@[가-힣][A-Za-z0-9_.가-힣]{1,29}",
    # @ hong_77: with a blank only what looks like a name for a program, or where one is called
    rf"(?<![A-Za-z0-9@_])(?<![A-Za-z0-9@_] )@ {_ODD_NAME}",
    rf"(?<![^\n])@ (?=[A-Za-z_]){_NAME}",
    rf"(?<![A-Za-z0-9@_])@ {_NAME}(?= ?(?:님|팔로우|팔로|구독|맞팔))",
)
"""Names that a sign marks."""

BESIDE = (
    rf"({CHAT} ?:? ?)@ {_NAME}",
    rf"((?:{CHAT}|{_SITE}) ?{NAMED}[ :은는=]{{0,3}}){_NAME}",
    rf"({CHAT} ?[:=] ?){_NAME}",
    # 카톡 hong77, 텔레 추가 hong77, 아이디 hong_77
    rf"({CHAT}{_LINK}|{NAMED}[ :은는=]{{1,3}}){_ODD_NAME}",
    # 카톡 gildong, 인스타 맞팔해요 gildong; behind a network alone, and with more to come, it is
    # what is told of it: 트위터 trend 1위
    rf"({_MESSENGER}{_LINK}|{CHAT}{_ASKED}|아이디[ :은는=]{{1,3}}){_PLAIN_NAME}",
    rf"({CHAT} )(?<=[가-힣ㄱ-ㅎ] ){_PLAIN_NAME}(?=(?:으?로)? ?{_ASKS}| ?(?:\n|$))",
    rf"{_FRONT}(?:{_ODD_NAME}|{_PLAIN_NAME}){_BEHIND}",
)
"""Names that `CHAT` or `NAMED` stands beside."""
