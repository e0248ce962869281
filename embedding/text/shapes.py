"""Shapes of personal data as regular expressions over normalised text (ASCII digits and dashes).

A group, where a pattern has one, is a cue in front that stays in the text. Every repetition is
bounded and starts at a boundary, so that no text makes matching slow.
"""

from __future__ import annotations

HANGUL_DIGITS = "공영일이삼사오육륙칠팔구"  # digits said in Hangul
_ALIKE = "oOlIㅇㅣ○"  # letters and signs typed for 0 and 1
SIGN = r"./·_~ㅡー─〜∼\-"  # signs that stand between groups of digits
# What stands between groups of digits; 에 and 다시 are dashes said aloud.
_GAP = rf"(?:[ \n]?[{SIGN})][ \n]?-?| ?(?:에|다시|대시|하이픈)(?: |(?=[0-9{HANGUL_DIGITS}]))|[ \n])"
_MAY = _GAP + "?"
_ODD = rf"(?:{_GAP}| ?[*=:,] ?)?"  # as well in mobile numbers, which begin like nothing else
_FIRST = r"(?=[(+0-9])(?<![0-9])(?<![0-9][-.,])(?<![A-Za-z]-)"  # what is quick to ask first
_LAST = r"(?![0-9])"
_YEAR = r"(?:19|20)[0-9]{2}"
_ONE = r"(?: ?[._-] ?| )"  # between digits written one at a time
# The same between all groups, where nobody writes it but to hide: 010하트1234하트5678
_COUNTS = "원년월일명개점만천번시분대위호층세살회건장주억조평차등"
_ODD_SIGN = (
    r"(?: ?[|^=+*;:♥♡★☆]{1,2} ?|\.\.|\)\(|\) |-?\n-?|[xX]"
    rf"| ?(?:대시|(?![{_COUNTS}])[가-힣ㄱ-ㅎ]{{1,3}}) ?)"
)
ODD = rf"[0-9](?P<odd>{_ODD_SIGN}|점)[0-9]{{1,7}}(?P=odd)[0-9]"
"""What every number holds whose groups an odd sign joins."""
CROSSED = r"*xX×#●○◯■□•"  # what stands for a hidden digit
_STAR = rf"[0-9{CROSSED}]"
BETWEEN = rf"(?: ?[{SIGN})*,] ?-?| ?(?:에|다시|대시|하이픈) ?| )"
_EITHER = rf"[0-9{_ALIKE}{HANGUL_DIGITS}]"
_BESIDE = "은행|뱅크|농협|신한|국민|우리|하나|기업|토스|카뱅|토뱅|케뱅|수협|신협|금고|주민"
SPELLED = (
    rf"(?:(?<![0-9A-Za-z가-힣])|(?<={_BESIDE})|(?<=[가-힣])(?=[0-9]|[oO○][1-7lI]))"
    rf"(?<![0-9][-.,]){_EITHER}(?:{BETWEEN}?{_EITHER}){{8,19}}(?![0-9{CROSSED}])"
)
"""Digits of which some are said or typed as letters: 공일공 일이삼사 오육칠팔, O1O-1234-5678."""
DIGITS = str.maketrans(_ALIKE + HANGUL_DIGITS, "0011010" + "00123456" + "6789")

_WEB = r"[^\s<>\"'가-힣]"
SITE_SUFFIX = "(?:com|net|org|kr|io|tv|me|be|gg|gl|ly|link|page|bio)"
_OWN = r"(?:(?<=/@)[가-힣A-Za-z0-9_.-]{1,30})?"  # youtube.com/@감자

URL = (
    rf"(?:https?|ftp)://{_WEB}{{1,2000}}{_OWN}",
    rf"(?<![A-Za-z0-9@.])www\.{_WEB}{{3,2000}}{_OWN}",
    rf"(?<![A-Za-z0-9@._-])(?:[A-Za-z0-9-]{{1,40}}\.){{1,3}}{SITE_SUFFIX}/{_WEB}{{0,2000}}{_OWN}",
)

_AT = (
    r"(?:@| ?[(\[{<] ?(?i:at|a|@|골뱅이|앳|엣) ?[)\]}>] ?|[_-](?i:at)[_-]"
    r"| ?(?:골뱅이|앳|엣) ?)"
)
_BLANK_AT = r"(?: ?@ ?\n?)"
_TOP = r"(?:com|net|org|edu|gov|info|io|me|kr)"
_ANY_TOP = rf"(?:{_TOP}|[a-z]{{2}})"
_WORD_DOT = r"(?: ?[(\[{<](?:(?i:dot)|점|닷|\.)[)\]}>] ?| (?i:dot) | ?[닷쩜점] ?)"
_SPELLED_DOT = rf"(?:[.。]|{_WORD_DOT})"
_DOT = (
    rf"(?:{_SPELLED_DOT}"
    rf"| ?[.,] ?(?=(?:{_TOP}|co|ac|or|go|re|pe|ne)(?![A-Za-z0-9]))|,(?=[a-z]{{2}}(?![A-Za-z0-9])))"
)
_HOST = (
    r"(?:naver|gmail|hanmail|daum|nate|kakao|hotmail|outlook|yahoo|icloud|qq|163|126|live|yandex"
    r"|proton(?:mail)?)"
)
_HOUSE = (
    r"(?:네이버|다음|한메일|지메일|쥐메일|구글|네이트|핫메일|카카오|야후|천리안|아웃룩|아이클라우드|엠팔"
    r"|드림위즈|파란|라이코스)"
)
_LOCAL = r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9_][A-Za-z0-9._%+-]{0,63}"
EMAIL = (
    # h o n g @ naver.com
    (
        r"(?<![A-Za-z0-9._])(?:[A-Za-z0-9_.-] ){3,30}@ ?"
        r"(?:[A-Za-z0-9-]{1,63}\.){1,4}[A-Za-z]{2,18}(?![A-Za-z0-9])"
    ),
    # hong@naver. com, hong#naver.com: only with the houses that everybody writes to here.
    rf"{_LOCAL}(?: ?[@#*&] ?| at )(?i:{_HOST}) ?[.,] ?(?i:{_TOP})(?:\.kr)?(?![A-Za-z0-9])",
    rf"{_LOCAL}{_AT}(?:[A-Za-z0-9-]{{1,63}}{_DOT}){{1,4}}[A-Za-z]{{2,18}}(?![A-Za-z0-9]|:[~/])",
    rf"{_LOCAL}{_BLANK_AT}(?:[A-Za-z0-9-]{{1,63}}{_DOT}){{1,4}}{_ANY_TOP}(?![A-Za-z0-9_])",
    # hong@naver; a@weights is a product
    (
        rf"{_LOCAL}(?<=[A-Za-z0-9._%+-]{{3}})@[A-Za-z][A-Za-z0-9-]{{1,62}}+"
        r"(?:[_.][A-Za-z0-9_-]{1,30}){0,3}+(?!:[~/])"  # not root@localhost:~#
    ),
    # hong골뱅이네이버닷컴
    (
        rf"{_LOCAL}(?:{_AT}|{_BLANK_AT}| (?i:at) ){_HOUSE}"
        r"(?:(?: ?[.닷쩜점,] ?)?(?:컴|콤|넷|com|net|co\.kr))?"
    ),
    rf"{_LOCAL} (?i:at) (?:[A-Za-z0-9-]{{1,63}}{_WORD_DOT}){{1,4}}[a-z]{{2,6}}(?!\.?[A-Za-z0-9])",
    # hong at naver.com: only with a name of the top level that is in common use here.
    rf"{_LOCAL} (?i:at) (?:[A-Za-z0-9-]{{1,63}}{_SPELLED_DOT}){{1,4}}{_TOP}(?![A-Za-z0-9])",
)

_DAY = r"[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
RESIDENT = (
    # Whole, or with its end crossed out; never gated on the check digit.
    rf"{_FIRST}(?<!바코드)(?<!바코드 ){_DAY}{_MAY}[1-8]{_STAR}{{6}}(?![0-9*])",
    # 85.01.01-1234567
    (
        rf"(){_FIRST}[0-9]{{2}}(?P<gap>[ ./])(?:0[1-9]|1[0-2])(?P=gap)(?:0[1-9]|[12][0-9]|3[01])\.?"
        rf" ?[-~ㅡー]? ?[1-8][0-9]{{6}}{_LAST}"
    ),
    # 앞자리 850101 뒷자리 1234567; 850101, 1234567 behind its name
    (
        rf"{_FIRST}{_DAY}[^0-9\n]{{0,6}}(?:뒷|뒤)(?: ?자리| ?번호)?[^0-9\n]{{0,4}}"
        rf"[1-8]{_STAR}{{6}}(?![0-9*])"
    ),
    (
        r"((?:주민|주\.민|주번|민번|민증|ㅈㅁ|등록 ?번호"
        rf"|(?<![A-Za-z])(?i:rrn|arc|registration|alien))[^0-9\n]{{0,12}}){_DAY}[^0-9\n]{{1,6}}[1-8]{_STAR}{{6}}(?![0-9*])"
    ),
    rf"{_FIRST}{_DAY}(?: ?[|^=+*;♥♡★☆]{{1,2}} ?|\.\.|\)\()[1-8][0-9]{{6}}{_LAST}",
    rf"{_FIRST}{_DAY},[1-8][0-9]{{6}}(?![0-9,원])",
    (
        rf"{_FIRST}[0-9]{_ONE}[0-9]{_ONE}(?:0{_ONE}[1-9]|1{_ONE}[0-2]){_ONE}[0-3]{_ONE}[0-9]{_ONE}"
        rf"[1-8](?:{_ONE}[0-9]){{6}}{_LAST}(?!{_ONE}[0-9](?![0-9]))"
    ),
    # Birthday and sex alone: 850101-1, 850101-1***
    rf"{_FIRST}(?<![0-9] - ){_DAY} ?- ?[1-8](?:[{CROSSED}]{{1,6}}|(?![0-9-]))",
)

# Of other countries: ITU-T E.164 (15 digits at most behind +), the North American plan (area and
# exchange begin with 2 to 9), ISO 13616 (IBAN).
_NOT_COUNTED = r"(?! ?(?:[원명개%]|people|times|users|won|dollars))"
_NO_YEARS = r"(?!(?:19|20)[0-9]{2}[-./ ~])"
_NO_SERVICE = r"(?!1[5-8][0-9]{2}[- ]?[0-9]{4}(?![0-9]))"
_CALL_ABROAD = (
    r"(?:手机|手機|电话|電話|携帯|номер|телефон|điện thoại|โทร"
    r"|(?<![A-Za-z<])(?i:phone|mobile|cell|whatsapp|viber|zalo|tel|call(?: me)?|text me"
    r"|my (?:[a-z]{2,9} )?number)(?![A-Za-z]))"
)
_FOREIGN_PHONE = (
    # +998(93)134-94-86, +86 15550287289
    (
        r"\+(?<![0-9A-Za-z]\+) ?[1-9]"
        r"(?:(?! [0-9]{1,2} ?[시분일월년명개])[ ().·/_~-]{0,2}[0-9]){7,14}"
        rf"{_LAST}{_NOT_COUNTED}"
    ),
    # 00700-86-138-6987-7785
    (
        r"(?<![0-9])(?<![0-9][-.,])00[1-9][0-9]{0,2}[- ][1-9][0-9]{0,2}"
        rf"(?:[- ][0-9]{{2,4}}){{2,4}}{_LAST}(?!-[0-9])"
    ),
    # (279) 555-0142, 1-253-555-0115, 681.555.0194
    rf"\((?<![0-9]\()[2-9][0-9]{{2}}\) ?[2-9][0-9]{{2}}-[0-9]{{4}}{_LAST}(?!-[0-9])",
    (
        r"(?<![0-9])(?<![0-9][-.,])(?:1-[2-9][0-9]{2}-[2-9][0-9]{2}-"
        rf"|(?:1\.)?[2-9][0-9]{{2}}\.[2-9][0-9]{{2}}\.)[0-9]{{4}}{_LAST}(?![-.][0-9])"
    ),
)
_CALLED = (
    # call 13807544709, 手机号 8 936 415-50-98
    (
        rf"((?=[手电電携нтđโPpMmCcWwVvZzTt]){_CALL_ABROAD}[^0-9\n]{{0,8}}){_NO_YEARS}{_NO_SERVICE}"
        rf"\(?[0-9](?:[ ().-]{{0,2}}[0-9]){{7,12}}{_LAST}(?!-[0-9]){_NOT_COUNTED}"
    ),
)
_WITH_IBAN = (
    "AD|AE|AT|BE|BG|CH|CY|CZ|DE|DK|EE|ES|FI|FR|GB|GE|GR|HR|HU|IE|IL|IS|IT|KZ|LI|LT|LU|LV|MC|MT|NL|NO"
    "|PL|PT|QA|RO|RS|SA|SE|SI|SK|TR|UA"
)
FOREIGN_ACCOUNT = (
    # DE86 1717 2097 3509 7300 41
    (
        rf"(?=[A-Z])(?<![A-Za-z0-9])(?:{_WITH_IBAN})(?=[0-9]{{2}}(?:[ A-Z]{{0,6}}[0-9]){{10}})"
        r"[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z]{0,2}[0-9][A-Z0-9]{0,2})?(?![A-Za-z0-9])"
    ),
    # account number 707275671
    (
        r"((?:(?<![A-Za-z])(?i:account|acct)\.? ?(?i:no|number|num|#)|账号|账户|口座番号"
        rf"|số tài khoản)[^0-9\n]{{0,8}}){_NO_YEARS}"
        rf"(?:[0-9](?:-?[0-9]){{6,18}}|[0-9]{{2,6}}(?: [0-9]{{2,6}}){{1,4}}){_LAST}"
    ),
)

_AREA = r"(?:2|3[1-3]|4[1-4]|5[1-5]|6[1-4]|70|80|50[2-8]?)"
_CALL = r"(?:전화|전번|연락처|핸드폰|휴대폰|핸펀|[☎☏📞📱]|(?<![A-Za-z<])(?i:tel|h\.?p|phone))"
_SIGNED = rf"(?:{_GAP}| ?[*=] ?)"  # 042*853*1234
_REST = rf"{_MAY}[0-9]{{3,4}}{_MAY}[0-9]{{4}}{_LAST}(?!-[0-9]{{5}})"
PHONE = (
    # +82 10-1234-5678, 82-2-123-4567; then those of other countries
    (
        rf"(?<![0-9])(?<![0-9][-.])(?<![A-Za-z]-)(?:\+ ?|00)?82{_MAY}\(?0?\)?{_MAY}"
        rf"(?:1[016789]|{_AREA}){_REST}"
    ),
    *_FOREIGN_PHONE,
    # 010-1234-5678, (02) 123-4567, 031.123.4567, 0 1 0 1 2 3 4 5 6 7 8
    rf"{_FIRST}\(?0(?:1[016789]|{_AREA})\)?{_REST}",
    rf"{_FIRST}01[016789]{_ODD}[0-9]{{3,4}}{_ODD}[0-9]{{4}}{_LAST}",
    rf"{_FIRST}\(?0{_AREA}\)?{_SIGNED}[0-9]{{3,4}}{_SIGNED}[0-9]{{4}}{_LAST}",
    # 전번 051, 701, 7415: commas only behind a word that says so, for they make lists as well.
    rf"((?:{_CALL}|폰|문자|문의|번호)[^0-9\n]{{0,8}})\(?0{_AREA}\)?{_ODD}[0-9]{{3,4}}{_ODD}[0-9]{{4}}{_LAST}",
    rf"(){_FIRST}01[016789](?P<sign>[^A-Za-z0-9\n]{{1,4}}|[xX])[0-9]{{3,4}}(?P=sign)[0-9]{{4}}{_LAST}",
    rf"{_FIRST}01[016789](?:[ .·/-]{{0,3}}[0-9]){{7,8}}{_LAST}",
    rf"{_FIRST}0{_ONE}1{_ONE}[016789](?: ?\))?(?:[ .·/_-]{{1,3}}[0-9]){{7,8}}{_LAST}",
    rf"{_FIRST}0 (?:2|[3-6] [1-5]|7 0|5 0 [2-8])(?: [0-9]){{7,8}}{_LAST}(?! [0-9](?![0-9]))",
    # A local number, only after a word that says so.
    (
        rf"({_CALL}[^0-9\n]{{0,8}})"
        rf"(?!{_YEAR}[-. ]{_YEAR})(?!1[568][0-9]{{2}}-)[0-9]{{3,4}}[-. ][0-9]{{4}}"
        rf"(?![0-9])(?! ?[-. ·/] ?[0-9*xX])(?! ?[명건개원호회표%](?![가-힣]))"
    ),
    *_CALLED,
)

_APART = rf"(?: ?[{SIGN}] ?-?| |, ?| ?(?:에|다시|대시|하이픈) ?)"
# A card does not begin within a phone number: 019 602 3736,010 4195 0262
_NEW = _FIRST + r"(?<!0[0-9]{2}[ ).])(?<!02[ ).])(?<!0[0-9]{2}[ .][0-9]{3}[ .])"
CARD = (
    # One digit at a time, or the first group in brackets.
    (
        rf"{_FIRST}(?:[3-69](?:{_ONE}[0-9]){{15}}|(?<![0-9] )3 [47](?: [0-9]){{13}}){_LAST}"
        r"(?! [0-9](?![0-9만천]))"
    ),
    rf"{_FIRST}\([3-69][0-9]{{3}}\) ?(?:[0-9]{{4}}{_APART}?){{2}}[0-9]{{4}}{_LAST}",
    # 1234-5678-9012-3456, the same mark between; then with others
    (
        rf"(){_NEW}[3-69][0-9]{{3}}(?P<mark>[ -])[0-9]{{4}}(?P=mark)[0-9]{{4}}(?P=mark)"
        rf"[0-9]{{4}}{_LAST}"
        r"(?<!00[ -][0-9]{2}00)"
    ),
    # 1234-5678-9012-3456, unless it is four years in a row.
    (
        rf"{_NEW}(?!{_YEAR}{_APART}{_YEAR}{_APART}{_YEAR})(?!(?:[0-9]{{2}}00{_APART}){{3}}[0-9]{{2}}00)[2-9][0-9]{{3}}{_APART}[0-9]{{4}}"
        rf"{_APART}[0-9]{{4}}{_APART}[0-9]{{4}}{_LAST}"
    ),
    rf"(카드[^0-9\n]{{0,10}})[3-69][0-9]{{3}}(?:{_APART}?[0-9]{{4}}){{3}}{_LAST}",
    rf"{_NEW}3[47][0-9]{{2}}{_APART}?[0-9]{{6}}{_APART}?[0-9]{{5}}{_LAST}",
    rf"{_FIRST}(?:[3-69][0-9]|2[2-7])[0-9]{{14}}{_LAST}",
)

HIDDEN_CARD = (
    # 1234-56**-****-7890, 123456******7890, 3712-******-12345.
    (
        rf"{_FIRST}(?=[0-9 {SIGN}]{{4,18}}[{CROSSED}])[2-9][0-9]{{3}}{_APART}?{_STAR}{{4}}"
        rf"{_APART}?{_STAR}{{4}}{_APART}?{_STAR}{{4}}(?!{_STAR})"
    ),
    (
        rf"{_FIRST}(?=[0-9 {SIGN}]{{4,18}}[{CROSSED}])3[47][0-9]{{2}}{_APART}?{_STAR}{{6}}"
        rf"{_APART}?{_STAR}{{5}}(?!{_STAR})"
    ),
)
HIDDEN_PHONE = (
    # 010-36**-2144, 02-12*-*345, 010-1234-567X
    (
        rf"{_FIRST}(?:(?:\+ ?|00)?82{_MAY}\(?0?\)?{_MAY}|\(?0)(?:1[016789]|{_AREA})\)?{_MAY}"
        rf"(?=[0-9 {SIGN}]{{1,9}}(?:[{CROSSED}][ {SIGN}]{{0,3}}[{CROSSED}]"
        rf"|(?<=[0-9]{{3}})[{CROSSED}](?!{_STAR})))"
        rf"(?=(?:[ {SIGN}{CROSSED}]{{0,5}}[0-9]){{5}})"
        rf"{_STAR}{{3,4}}{_MAY}{_STAR}{{4}}(?!{_STAR})(?![A-Za-z])"
    ),
)
"""Cards and phones of which some digits are crossed out."""

_PARCEL = r"(?:송장|운송|택배|등기|소포|주문|예약|접수)"
_BANK = (
    r"(?=[국신우하농기제씨대부광전경수새금카토케아산은뱅계통입송예银账口通AaBbIiKkNnSsWw])"
    r"(?:국민|신한|우리|하나|농협|기업|제일|씨티|대구|부산|광주|전북|경남|제주|수협|신협|우체국|새마을|금고|카카오|"
    r"카뱅|토스|토뱅|케이|케뱅|아이엠|산업|은행|뱅크|계좌|통장|입금|송금|예금주|银行|账号|账户|口座|通帳"
    r"|(?<![A-Za-z])(?i:kb|nh|ibk|sc|keb|kdb|im|acct|woori|shinhan|kookmin)(?![A-Za-zÀ-ỹ])"
    r"|(?i:bank))"
)
_NO_DATE = rf"(?!{_YEAR}[-./ ](?:0?[1-9]|1[0-2])[-./ ])(?!{_YEAR}[- ,]{_YEAR})"
_NO_DATE += rf"(?!{_YEAR}(?:0[1-9]|1[0-2])[0-3][0-9][- ~]{_YEAR})"
_NO_DATE += rf"(?!(?:[01]?[0-9][-./])?[0-3]?[0-9]\.? ?~ ?{_YEAR}[-./])"  # 8/14 ~ 2000.12.09
_NO_DATE += rf"(?!{_YEAR}(?:0[1-9]|1[0-2])[0-3][0-9][_-][0-9]{{6}}(?![0-9]))"  # 20061108_169290
_NO_DATE += r"(?!(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9.-]))(?![0-9]{1,2}\.[0-9]{5})"  # IP, 3.14159
_NO_BUSINESS = r"(?![0-9]{3}-[0-9]{2}-[0-9]{5}(?![0-9-]))(?!97[89]-)"  # nor the number of a book
_NO_BANK = (
    r"(?:국민|우리|하나|기업|제일|대구|부산|광주|전북|경남|제주|산업|카카오|토스|케이)"
    r"(?!은행|뱅크|(?:이?요|[이예]에?요|입니다|임)(?![가-힣])|[^가-힣]|$)"
)
# Numbers of parcels, orders and files are printed in the groups of some banks.
_OTHER = (
    r"(?P<other>(?:송장|운송|택배|등기|주문|예약|접수|사건|문서|허가|신고|제품|모델|특허|출원|바코드|쿠폰)"
    r"[^0-9\n]{0,8}[0-9][0-9-]{5,30})"
)
_DASH = r"(?: ?- ?)"
_END = r"(?![0-9]|[원호](?![가-힣]))"  # 1234567890원 is a sum of money
# Beside the name of a bank; a count or a day that follows is not of the number.
_COUNT = rf"(?!\.? [0-9]{{1,4}} ?[일월년시명개살층](?![0-9{HANGUL_DIGITS}]))"
_ANY = rf"{_COUNT}(?: ?[{SIGN}] ?-?| | ?(?:에|다시|대시|하이픈) ?)"
# Ten digits or more in one piece, or in groups that the same mark joins.
_JOINED = (
    rf"{_NO_DATE}(?=[0-9](?:{_ANY}?[0-9]){{9}})(?:[0-9]{{10,16}}"
    rf"|[0-9]{{2,7}}(?P<mark>{_ANY})(?=(?:[0-9](?P=mark)?){{7}})"
    r"[0-9]{1,8}(?:(?P=mark)[0-9]{1,8}){1,3}"
    rf"|[0-9](?:{_ONE}[0-9]){{9,15}})"
)
_ALL_ROUND = rf"(?!(?:[0-9]{{1,6}}0,){{2,3}}[0-9]{{1,6}}0{_LAST})"
# 123456,12,123456: groups that are no sum of money and no list of round numbers
_COMMAS = (
    rf"{_NO_DATE}(?![0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9,])){_ALL_ROUND}"
    r"(?=(?:[0-9],?){10,14}(?![0-9,]))[0-9]{3,6}(?:,[0-9]{2,7}){2,3}+"
)
_NO_PHONE = rf"(?!01[016789]{_REST}(?!-[0-9]))(?!0{_AREA}{_REST}(?![ -]?[0-9]))(?!82{_GAP}1)"
_NEAR = rf"{_BANK}(?:(?!{_PARCEL})[^0-9\n]){{0,15}}(?:\n[^0-9\n]{{0,3}})?"
_SAYS_BANK = r"(?:[가-힣]{2,5}(?:은행|뱅크)|농협|수협|신협|새마을|우체국|카뱅|토뱅|케뱅)"
_BEHIND = (
    rf"(?= ?[(,/]? ?(?!{_NO_BANK}){_BANK}| ?(?:이|그|제|저희) ?(?:계좌|통장)"
    r"|(?:으?로| ?여기로) ?(?:송금|입금|이체)"
    rf"| [가-힣]{{2,4}} (?:{_SAYS_BANK}|[가-힣A-Z]{{2,6}}으?로 ?(?:입금|송금|이체)))"
)
# Beside the name of a bank, so that a part of it is not taken for a phone.
GLUED = (
    (
        rf"({_BANK}(?:번호)?(?:이고|은|는| [가-힣]{{2,4}})?[^0-9가-힣]{{0,3}})"
        rf"{_NO_PHONE}{_JOINED}{_END}"
    ),
    rf"(){_FIRST}{_NO_PHONE}{_JOINED}(?= ?(?:[(/]?{_SAYS_BANK}|(?:이|그|제|저희) ?(?:계좌|통장)))",
)
ACCOUNT = (
    # Three to five groups joined by dashes, ten to sixteen digits in all, one of three or more.
    (
        rf"{_OTHER}|{_FIRST}(?<![A-Za-z]){_NO_DATE}{_NO_BUSINESS}(?=(?:[0-9]{_DASH}?){{10,16}}(?![0-9-]))"
        rf"(?=[0-9 -]{{0,12}}[0-9]{{3}})[0-9]{{2,6}}(?:{_DASH}[0-9]{{1,8}}){{2,4}}+{_LAST}"
        r"(?! ?호(?![가-힣]))"
    ),
    # Ten to sixteen digits near the name of a bank.
    rf"({_NEAR}){_JOINED}{_END}",
    rf"({_NEAR})(?:{_NO_DATE}[0-9](?:{_ANY}?[0-9]){{9,15}}|{_COMMAS}){_END}",
    rf"{_FIRST}(?<![A-Za-z])(?:{_NO_DATE}[0-9](?:{_ANY}?[0-9]){{9,15}}|{_COMMAS}){_BEHIND}",
)
ODD_CARD = (
    (
        r"((?:카드|ㅋㄷ|(?<![A-Za-z<])(?i:card|visa|master))[^0-9\n]{0,12})"
        rf"[3-69][0-9]{{3}}(?P<odd>{_ODD_SIGN}|점)[0-9]{{4}}(?P=odd)[0-9]{{4}}(?P=odd)[0-9]{{4}}{_LAST}"
    ),
)
ODD_ACCOUNT = (
    (
        rf"({_NEAR})(?=(?:[^0-9]{{0,4}}[0-9]){{10}})[0-9]{{2,6}}(?P<odd>{_ODD_SIGN})[0-9]{{2,7}}"
        rf"(?:(?P=odd)[0-9]{{1,8}}){{1,3}}+{_END}"
    ),
)
# 110-7**-641590, 5811●●-●4-467511: seven digits or more are left to see
_PARTLY = (
    rf"{_NO_DATE}(?=[0-9-]{{2,9}}[{CROSSED}]-?[{CROSSED}])(?=(?:[{CROSSED}-]{{0,5}}[0-9]){{7}})"
    rf"[0-9]{{2}}(?:-?{_STAR}){{8,14}}(?!-?{_STAR})(?![A-Za-z])"
)
HIDES = rf"[0-9][ {SIGN}]{{0,4}}[{CROSSED}]"
"""What every number holds of which some digits are hidden."""
HIDDEN_ACCOUNT = (rf"({_NEAR}){_PARTLY}", rf"{_FIRST}{_PARTLY}{_BEHIND}")
"""Accounts of which some digits are crossed out."""

LABELLED = (
    r"(?=[0-9A-Za-z송운택등소주예접승거사문허공신청관상제품모시일바의법특출])(?:"
    # a digital object, an identifier of programs, a parcel, an order
    r"(?<![0-9.])10\.[0-9]{4,5}/[A-Za-z0-9.()/-]{4,60}"
    r"|(?<![0-9A-Za-z-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z-])"
    r"|(?<![A-Za-z])(?i:usps|fedex|dhl|ems|tracking)[^0-9\n]{0,10}(?:[0-9]{4} ){3,5}[0-9]{1,4}"
    r"|(?<![A-Za-z])(?i:order|tracking|invoice|serial|ticket|case|model|part|item|lot|patent|booking"
    r"|reservation|upc|ean|imei)(?: ?(?i:no|number|num|id|code)\b\.?(?: ?[:#]{1,2})? ?| ?# ?"
    r"|(?<=(?i:upc|ean)) |(?<=(?i:imei)) )"
    rf"(?!01[016789]{_REST}(?!-[0-9]))(?=[A-Z0-9-]{{0,12}}[0-9]{{3}})[A-Z0-9](?:-?[A-Z0-9]){{5,29}}"
    r"(?![0-9])"
    r"|(?<![A-Za-z])(?i:isbn|issn)[^0-9\n]{0,4}(?:1[03] ?[:)] ?)?[0-9](?:[- ]?[0-9]){6,12}-?[xX]?|"
    rf"(?:(?:{_PARCEL}|승인|거래|사건|문서|허가|공고|(?<!거소)신고|청원|관리|상품|제품|품목|모델|시리얼|일련|바코드|의안"
    r"|법인(?: ?등록)?|사업자(?: ?등록)?|특허|출원) ?(?:번호|코드|넘버)"
    rf"|(?:사업자|바코드|송장|운송장|시리얼|택배|등기|소포)(?! ?0{_AREA}{_REST}))"
    r"[은는이가]? ?[:=#(\[]? ?[A-Za-z]{0,4}"
    rf"(?!01[016789]{_REST})"
    rf"(?:(?<=법인등록번호 )|(?<=법인번호 )|(?!{_DAY}-[1-8][0-9]{{6}}(?![0-9])))"
    r"[0-9](?:-?[0-9]){5,23}(?![0-9]))"
)
"""A number that a word names as that of a thing: neither masked nor asked for its shape."""

PARTICLE = (
    r"(?:으?로|은|는|이|가|을|를|에|에서|에게|와|과|도|만|의|님|님이|님은|님께"
    r"|입니다|이며|이고|이다|임|번)"
)
