"""Shapes of phone numbers and bank accounts of other countries, as regular expressions.

ITU-T E.164 (15 digits at most behind +), the North American plan (area and exchange begin with 2 to
9), ISO 13616 (IBAN). A group, where a pattern has one, is a cue in front that stays in the text.
"""

from __future__ import annotations

_LAST = r"(?![0-9])"
_NOT_COUNTED = r"(?! ?(?:[원명개%]|people|times|users|won|dollars))"
_NO_YEARS = r"(?!(?:19|20)[0-9]{2}[-./ ~])"
_NO_SERVICE = r"(?!1[5-8][0-9]{2}[- ]?[0-9]{4}(?![0-9]))"
_CALL = (
    r"(?:手机|手機|电话|電話|携帯|номер|телефон|điện thoại|โทร"
    r"|(?<![A-Za-z<])(?i:phone|mobile|cell|whatsapp|viber|zalo|tel|call(?: me)?|text me"
    r"|my (?:[a-z]{2,9} )?number)(?![A-Za-z]))"
)
FOREIGN_PHONE = (
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
CALLED = (
    # call 13807544709, 手机号 8 936 415-50-98
    (
        rf"((?=[手电電携нтđโPpMmCcWwVvZzTt]){_CALL}[^0-9\n]{{0,8}}){_NO_YEARS}{_NO_SERVICE}"
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
