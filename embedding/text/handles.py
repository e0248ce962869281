"""Shapes of the names people go by in messengers and networks, as regular expressions.

A name is recognised by what stands beside it: a messenger or network, a word that asks to write
there, a word for name. With a digit or a line in it, it needs one of these; made of letters alone,
it also has to be none of the words that are said of messengers.
"""

from __future__ import annotations

_LATIN = r"(?<![A-Za-z])(?i:{})(?i: ?id)?(?![A-Za-z])"
_MESSENGER = (
    r"(?:카카오톡|[카까][톡똑]|[깨갠오]톡|ㅋ[rR]톡|ㅋㅌ|ㅌㄹ|톡디|텔레|라인|위챗|디엠|친추|맞팔"
    r"|(?<![가-힣])[톡텔](?![가-힣])|微信号?|(?<![가-힣])톡(?=아이디|아디|(?i:id)|주|줘|하|해))"
)
_NETWORK = (
    r"(?:틱톡|텔레그램|인스타그램|인스타|인별|트위터|트윗|디스코드|디코|스카이프|스냅챗?(?![샷사])|스레드|쓰레드|[와왓]츠앱|왓챕|"
    + _LATIN.format(
        "kakao(?:talk)?|wechat|dm(?!-)|telegram|(?:tg|ig)(?!-)|insta(?:gram)?|discord|line|twitter|tiktok|twitch"
        "|snapchat|whatsapp"
    )
    + ")"
)
_FIRST = "(?=[微카까깨갠오ㅋㅌ톡텔라위디친맞틱인트스쓰와왓kKwWdDtTiIlLsS])"
CHAT = f"(?:{_FIRST}(?:{_NETWORK}|{_MESSENGER}))"
_SITE = (
    r"(?:페북|페이스북|페메|네이버|다음(?= ?(?:아이디|아디|계정|카페|메일|블로그|(?i:id)))"
    r"|유튜브|유튭|트위치|치지직|블로그|오픈채팅|오픈톡|옾챗|배틀넷|배틀태그"
    r"|스팀|깃허브|아프리카|쪽지|출처|[📷📸©]|(?<![A-Za-z])cr\.)"
)
_OTHER = (
    r"(?:닉네임|(?<![가-힣])닉|카페닉|[본부비공]계(?:정)?|[본부]캐|팔로우|팔로|선팔"
    r"|친구 ?추가|추가(?= ?(?:해 ?주|부탁|[ㄱ:])))"
)
_NAMED = r"(?:아이디|아디|계정|(?<![A-Za-z])(?i:id)(?![A-Za-z]))"
_ASKS = (
    r"(?:주세요|주셔요|주시면|주삼|주셈|줘요|줘|남겨|보내|하세요|해요|해 ?주세요|걸어|친구 ?추가"
    r"|추가|친추|등록|문의|연락|상담|신청|환영|가능|검색|맞팔|선팔|팔로우|팔로|디엠|(?i:dm)|부탁|바람"
    r"|받아요)"
)
_THING = (  # covid19, GTA5, iphone15pro, user_id: a thing and its number; naver.com, a.jpg
    r"(?!(?i:v|ver|version|covid|iphone|ipad|galaxy|note|win|windows|ios|ipados|macos|android|utf|mp"
    r"|gta|fifa|fc|kbs|mbc|sbs|tvn|ytn|kf|top|part|ep|vol|season|chapter|level|lv|page|day|step|ipv"
    r"|sha|base|python|java|html|css|bts|rtx|gtx|usb|dx|directx|gpt|chatgpt|type|class|room|no|hdr"
    r"|hdmi|mysql|dota|b(?=612)|skin|kakaotalk|server|channel|user|item|line|table|col|file|test"
    r"|image|img|photo|video|screenshot)[-_.]?(?:[0-9]+(?:[._][0-9]+)*|id|name|key)"
    r"(?:pro|max|plus|mini|ultra|th|st|nd|rd|gb|k)?(?![A-Za-z0-9_]))"
    r"(?![A-Za-z0-9.-]{1,40}\.(?i:com|net|org|kr|io|tv|me|gg|ai|dev|app|us|cn|jp|gov|edu|xyz|co|site"
    r"|jpe?g|png|gif|heic|exe|apk|pdf|hwp|docx?|xlsx?|pptx?|csv|mov|avi|mp[34]|txt|zip|html?|py|js)"
    r"(?![A-Za-z0-9_]))"
)
_NO_NOUN = (
    r"(?! ?(?:컬럼|테이블|서버|필터|파일|업데이트|버전|버그|화질|사양|뉴스|설치|오류|에러"
    r"|포트|기능|모델))"
)
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{3,29}+"
_ODD_NAME = (
    rf"{_THING}(?=[A-Za-z0-9.-]{{0,29}}[0-9_]|[A-Za-z]{{2,20}}\.[A-Za-z])"
    rf"(?=[0-9_.-]{{0,29}}[A-Za-z]){_NAME}{_NO_NOUN}"
)
# Small letters with a line, or with digits behind: a name even where little tells of one.
_LOGIN = (
    rf"(?=[a-z_])(?<![A-Za-z0-9_.@#/-]){_THING}"
    r"(?=[a-z0-9.]{0,24}_|[a-z.]{3,24}[0-9]|[a-z]{2,20}\.[a-z]{2})(?=[0-9_.]{0,24}[a-z])"
    rf"[a-z0-9_.]{{4,30}}+(?![A-Z@/(=-]){_NO_NOUN}"
)
# A Korean name in Latin letters: by its syllables it is no English word.
_ROMAN = (
    r"(?=[a-z]{5})(?<![A-Za-z0-9_.@#/-])(?=[a-z]{5,20}(?![A-Za-z0-9_.@/(=-]))(?:kim|lee|park|choi|jung|jeong|kang"
    r"|cho|yoon|yun|jang|lim|han|seo|shin|kwon|hwang|ahn|song|ryu|hong|min|ji|hoon|hun|seok|joon|jun"
    r"|woo|wook|won|ha|hae|eun|bin|young|yeong|soo|su|hyeon|hyun|hye|jin|kyung|kyu|gyu|tae|do|dong"
    r"|sung|seong|seung|sang|yeon|ye|in|na|ra|mi|hee|ho|gun|geon|yong|chul|gil|chan|jae|sun|seon|bo"
    r"|sol|bom|byul|yoo|yu|ah|rin|joo|ju|seul|gi|ki|hwan|myung|nam|suk|ok|a|i){2,6}(?![a-z])"
)
_CAMEL = rf"(?=[A-Za-z]{{1,19}}[a-z][A-Z]){_NAME}"
_SPELLED_HANDLE = r"[A-Za-z0-9_.]{0,20}언더바[A-Za-z0-9_.]{1,20}(?:언더바)?[A-Za-z0-9_.]{0,20}"
_ABOUT_IT = (
    r"(?:reels?|stor(?:y|ies)|live|feeds?|highlights?|log(?:in|out)|updates?|themes?|emojis?"
    r"|emoticons?|stickers?|profiles?|hashtags?|filters?|messages?|messenger|channels?|premium"
    r"|music|videos?|photos?|groups?|chats?|servers?|desktop|windows?|android|iphone|ipad|mobile"
    r"|official|online|games?|talk|shop|store|webtoon|friends?|page|links?|open|test|error|beta"
    r"|lite|business|https?|naver|google|kakao(?:talk)?|line|instagram|facebook|twitter|youtube"
    r"|telegram|discord|wechat|password|follow(?:ers?|ing)?|like)"
)
_PLAIN_NAME = rf"(?!{_ABOUT_IT}(?![a-z])){_THING}[a-z](?:\.?[a-z]){{3,19}}(?![A-Za-z0-9_])"
_MARK = r"(?: ?(?!\.\.)[-:=~!>./(\[]{1,2} ?| )"
_WHERE = r"(?:은|는|으?로만?)?"
_IS = r"(?:이?요|[이예]에?요|입니다|이고|인데|임)(?![가-힣])"
_LINK = rf"{_WHERE}(?: ?{_ASKS}){{0,3}}(?: ?{_NAMED}[은는]?)?{_MARK}"
_ASKED = rf"{_WHERE}(?:(?: ?{_ASKS}){{1,3}}(?: ?{_NAMED}[은는]?)?| ?{_NAMED}[은는]?){_MARK}"
_NEAR = r"[^A-Za-z0-9ㄱ-ㅎ\n#@<_.]{0,16}"  # 카톡 제 본계는, 인스타 →
_NEXT = r"[ :은는=-]{0,3}\n"  # a label alone at the end of a line
_FRONT = r"(?=[A-Za-z0-9_])(?<![A-Za-z0-9_.@-])"
_BEHIND = (
    rf"(?=(?:으?로)? ?(?:\({CHAT}\)|{CHAT} ?(?:{_ASKS}|{_NAMED}(?! ?[:=]? {{0,2}}[A-Za-z0-9_<]))))"
)
_ASKED_FOR = (
    rf"(?:{CHAT}|[맞선]팔|팔로우|팔로|검색|(?:이 ?)?계정|사칭|이 ?사람"
    r"|(?:친구 ?)?추가(?: ?해 ?주|요| ?부탁| ?ㄱ| ?좀))"
)
_ASKED_BEHIND = rf"(?= ?(?:(?:으?로|한테|에게) ?)?[(]?{_ASKED_FOR}| ?님)"

_NO_NAME = (  # of code and of rooms, and a place to meet
    r"(?!(?i:media|import|font-face|keyframes|supports|charset|page|layer|include|mixin|extend"
    r"|override|autowired|component|service|controller|bean|test|param|returns?|author|since|throws"
    r"|deprecated|everyone|here|channel|all|property|staticmethod|classmethod|dataclass|nonnull"
    r"|nullable|suppress[a-z]*|entity|id|column|data|getter|setter|injectable|input|output|types)"
    r"(?![A-Za-z0-9_.-]))(?![a-z-]+/[a-z])"
    r"(?![가-힣]{1,8}(?:역|점|홀|공원|광장|센터|카페)(?:에서?)?(?![가-힣A-Za-z0-9_.-]))"
    r"(?![가-힣]{2,8} (?:[0-9]{1,2}(?:차|단지|층|동|호)"
    r"|근처|앞|정모|모임|카페|식당|공원|센터|광장))"
)
AT = (
    (
        rf"(?<![A-Za-z0-9@_\\])@{_NO_NAME}(?:[A-Za-z_]|[0-9]{{1,3}}[A-Za-z_])[A-Za-z0-9_.]{{1,29}}+"
        r"(?:-[A-Za-z0-9]{1,16}(?![A-Za-z0-9])){0,2}+(?!\([\"')])"
        r"(?:언더바[A-Za-z0-9_.]{0,20}){0,2}"
    ),
    rf"(?<![A-Za-z0-9@_가-힣])@{_NO_NAME}[가-힣][A-Za-z0-9_.가-힣]{{1,29}}(?:-[A-Za-z0-9]{{2,8}})?",
    # @ hong_77: with a blank only what looks like a name for a program, or where one is called
    rf"(?<![A-Za-z0-9@_])(?<![A-Za-z0-9@_] )@ {_ODD_NAME}",
    rf"(?<![^\n])@ (?=[A-Za-z_]){_NAME}",
    rf"(?<![A-Za-z0-9@_])@ {_NAME}(?= ?(?:님|팔로우|팔로|구독|맞팔))",
)
"""Names behind @."""

_NOT_COUNTED = (
    r"(?<!번호)(?<!주문)(?<!이슈)(?<!문자)(?<!전화)(?<!방송)(?<!사건)(?<!상품)(?<!문의)"
    r"(?<!(?i:ssue))(?<!(?i:rder))(?<!(?i:cket))(?<!(?i:.bug))(?<!(?i:case))(?<!(?i:room))"
)
_TAG = (
    rf"{_NOT_COUNTED}#(?!(?:19[5-9]|20[0-4])[0-9](?![0-9]))(?:[0-9]{{4,5}}|[A-Z]{{2,4}}[0-9]{{1,2}})"
    r"(?![0-9A-Za-z#])(?! ?[번호위편화회])"
)
TAGGED = (
    rf"(?<![A-Za-z0-9_.#])[A-Za-z_][A-Za-z0-9_.]{{2,31}}{_TAG}",
    rf"(?<![A-Za-z0-9_.#가-힣])[가-힣][A-Za-z0-9_.가-힣]{{1,15}}{_TAG}",
    (
        r"((?:롤|라이엇|발로|발로란트|롤체) ?(?:닉네임|닉|아이디|친추)?[ :은는]{1,3})"
        r"[가-힣A-Za-z0-9_.]{2,16}#[가-힣A-Za-z0-9]{2,5}"
    ),
    # a number that could be a year
    (
        r"((?:배틀태그|배틀넷|디스코드|디코|(?i:discord)) ?(?:닉네임|닉|아이디|친추)?"
        r"[ :은는\n]{1,3})"
        r"[가-힣A-Za-z0-9_.]{2,32}#[0-9]{4,5}(?![0-9A-Za-z#])"
    ),
)
"""Names of games and rooms with their number: gildong#1234, 길동#KR1."""

BESIDE = (
    rf"({CHAT}(?: is| ?:)? ?)@ {_NAME}",
    rf"((?:{CHAT}|{_SITE}) ?{_NAMED}[ :은는=]{{0,3}}){_NAME}",
    rf"({CHAT} ?[:=] ?){_NAME}",
    # 카톡 k언더바hong
    rf"((?:{CHAT}|{_NAMED}){_NEAR}){_SPELLED_HANDLE}",
    # 카톡 hong77, 텔레 추가 hong77, 아이디 hong_77
    rf"({CHAT}{_LINK}|{_NAMED}[ :은는=]{{1,3}}){_ODD_NAME}",
    # 인스타hong_77, 카톡 제 본계 hong77, 텔레 ❤ hong77, and on the next line
    rf"((?:{CHAT}|{_NAMED})(?:{_NEXT}|{_NEAR})|(?:{_SITE}|{_OTHER}){_NEAR})(?:{_LOGIN}|{_ROMAN})",
    # 카톡 gildong, 인스타 맞팔해요 gildong; behind a network alone, and with more to come, it is
    # what is told of it: 트위터 trend 1위
    rf"({_MESSENGER}{_LINK}|{CHAT}{_ASKED}|아이디[ :은는=]{{1,3}}){_PLAIN_NAME}",
    rf"({CHAT} )(?<=[가-힣ㄱ-ㅎ] ){_PLAIN_NAME}(?=(?:으?로)? ?{_ASKS}| ?(?:\n|$)|{_IS})",
    rf"((?<![^\n]){CHAT} ){_PLAIN_NAME}(?= ?(?:\n|$))",
    rf"{_FRONT}(?:{_ODD_NAME}|{_PLAIN_NAME}){_BEHIND}",
    rf"{_LOGIN}{_ASKED_BEHIND}",
    rf"((?:아이디|아디|닉|닉네임)[ :은는=]{{1,3}}){_CAMEL}",
)
"""Names that a word stands beside."""

_WORD = (
    r"(?:(?=[微카까깨갠오ㅋㅌ톡텔라위디친맞틱인트스쓰와왓페네다유치블옾배깃아쪽출📷📸©계닉본부비공팔선추"
    rf"A-Za-z])(?:{CHAT}|{_NAMED}|{_SITE}|{_OTHER}))"
)
WORTH_A_LOOK = (
    rf"{_WORD}(?:{_NEXT}|[^A-Za-z0-9\n]{{0,16}})[0-9]{{0,8}}[A-Za-z_]"
    rf"|[A-Za-z0-9_] ?(?:(?:으?로|한테|에게) ?)?[(]?{_ASKED_FOR}|[a-z0-9_] ?님"
)
"""What every text with a name of `BESIDE` holds."""
