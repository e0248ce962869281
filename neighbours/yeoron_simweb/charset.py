"""EUC-KR as pages of the time were written: KS X 1001 only, the rest as character references."""

from __future__ import annotations


def encode_euckr(text: str) -> bytes:
    """Encode markup; a character outside KS X 1001 (뷁, 😀) becomes &#N;.

    Python's own codec writes such syllables as eight-byte jamo sequences that browsers do not
    put together again, hence character by character.
    """
    try:
        plain = text.encode("cp949")
    except UnicodeEncodeError:
        return b"".join(_encode(char) for char in text)
    # cp949 is KS X 1001 plus pairs with a byte below 0xA1; most texts have none of these.
    return plain if _is_ksx1001(plain) else b"".join(_encode(char) for char in text)


def _encode(char: str) -> bytes:
    try:
        code = char.encode("cp949")
    except UnicodeEncodeError:
        return f"&#{ord(char)};".encode()
    return code if _is_ksx1001(code) else f"&#{ord(char)};".encode()


def _is_ksx1001(code: bytes) -> bool:
    at = 0
    while at < len(code):
        if code[at] < 0x80:
            at += 1
        elif code[at] >= 0xA1 and code[at + 1] >= 0xA1:
            at += 2
        else:
            return False
    return True
