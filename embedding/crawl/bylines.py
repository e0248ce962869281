"""Bylines: who wrote a page, and the page's text without it.

A name is found where a page says that it is its author's: JSON-LD `author`, the usual meta
elements, `itemprop="author"`, `rel="author"`, elements of a class like `byline`, and lines such as
`홍길동 기자 hong@example.kr`. Names of departments, sites and roles are no names of people.
Everything here takes time linear in the text: all repetitions have a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from embedding.crawl.jsonld import objects, texts_of

_MOST_NAMES = 20
_LONGEST_NAME = 40
_LONGEST_BYLINE = 160
"""Characters of a line that is a byline."""
_LONGEST_ELEMENT = 100
"""Characters of an element that is a byline; a longer one holds more than that."""

_ROLE = (
    r"(?:(?:수습|인턴|선임|전문|객원|시민|사진|영상|논설|취재|명예)\s?)?"
    r"(?:기자|특파원|통신원|논설위원|편집위원|칼럼니스트|에디터|리포터|앵커|평론가|PD)"
)
_ENGLISH_ROLE = (
    r"(?:(?:Staff|Senior|Contributing|Chief|Guest)\s)?"
    r"(?:Reporter|Writer|Correspondent|Editor|Journalist|Photographer|Columnist)"
)
_NAME = r"[가-힣A-Za-z][가-힣A-Za-z0-9_.]{1,19}"
_NAMES = rf"(?<![\w.]){_NAME}(?:\s?[·,/ㆍ&]\s?{_NAME}){{0,4}}"
_MAIL = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"
_DATE = (
    r"(?:(?:입력|수정|등록|승인|발행|작성|게시|최종수정|기사입력)\s?[:：]?\s?)?"
    r"(?:19|20)\d\d\s?[-./년]\s?\d{1,2}\s?[-./월]\s?\d{1,2}\s?[일.]?"
    r"(?:[\sT]{1,2}(?:오전|오후)?\s?\d{1,2}[:시]\s?\d{2}(?:[:분]\s?(?:\d{2})?)?(?:초)?)?"
    r"(?:\s?(?:UTC|KST|Z|[+-]\d\d:?\d\d))?"
)
_GAP = r"[\s|·/=,:;()\[\]<>▲△■◆※-]{0,6}"
_BYLINE = rf"(?:{_NAMES})\s?{_ROLE}"

_LINE = re.compile(
    rf"{_GAP}(?:(?:글|취재|사진|글·사진)\s?[=:·]?\s)?(?:[가-힣A-Za-z]{{1,12}}\s?=\s?)?"
    rf"(?:{_NAMES}\s)?{_BYLINE}{_GAP}(?:{_MAIL})?{_GAP}"
    rf"(?:{_DATE})?{_GAP}(?:{_MAIL})?{_GAP}"
)
"""A line that is nothing but a byline."""
_ENGLISH_LINE = re.compile(
    rf"(?:[Ww]ritten\s)?(?:[Bb]y|BY)\s((?:[A-Z][\w.'-]{{0,20}}\s?){{1,4}}"
    rf"(?:,?\s?(?:and|&)\s(?:[A-Z][\w.'-]{{0,20}}\s?){{1,4}})?)"
    rf"(?:,\s?[\w\s]{{1,40}})?{_GAP}(?:{_MAIL})?{_GAP}(?:{_DATE})?{_GAP}"
)
_ENGLISH_ROLE_LINE = re.compile(
    rf"((?:[A-Z][\w.'-]{{0,20}}\s?){{1,4}}),?\s{_ENGLISH_ROLE}{_GAP}(?:{_MAIL})?{_GAP}"
)
_DATE_LINE = re.compile(rf"{_GAP}{_DATE}(?:{_GAP}{_DATE})?{_GAP}")
_MAIL_LINE = re.compile(rf"{_GAP}(?:{_NAME}\s)?{_MAIL}(?:{_GAP}{_MAIL})?{_GAP}")
_LEAD = re.compile(
    rf"[\[(【<][가-힣A-Za-z·,\s]{{1,20}}[=·/][^\])】>\n]{{1,30}}[\])】>]\s?"
    rf"((?:{_NAMES}\s?{_ROLE}(?:\s?[·,]\s?)?){{1,3}})\s?[=:-]\s?"
)
"""`(서울=연합통신) 홍길동 기자 = ` before the text begins."""
_PLAIN_LEAD = re.compile(rf"({_NAMES}\s{_ROLE})\s?=\s")
_BRACKETS = re.compile(
    rf"[\[(【<](?:[^\])】>\n]{{0,30}}[\s=·/])?({_NAME}\s?{_ROLE})(?:\s?{_MAIL})?\s?[\])】>]"
)
_WITH_MAIL = re.compile(rf"({_NAMES}\s?{_ROLE}\s?[/|·(]?\s?{_MAIL}\)?|{_MAIL}\s?{_BYLINE})")
_TAIL = re.compile(rf"(?<=[.다요\])\"”’/])\s{{0,2}}/?\s{{0,2}}({_NAMES}\s{_ROLE})\.?\s{{0,3}}$")
"""`…했다. 홍길동 기자` at the end of a line."""
_CREDIT = re.compile(
    r"[\[(<【/▲]?\s?(?:글·)?(?:자료\s?사진|사진|그래픽|일러스트|Photo|Photograph|Image|Credit)"
    rf"(?:\s?(?:제공|출처|by))?\s?[=:ㅣ|ⓒ©]\s?(?:{_NAMES}(?:\s?{_ROLE})?|[A-Z][\w.'-]{{0,20}}"
    rf"(?:\s[A-Z][\w.'-]{{0,20}}){{0,3}})(?:\s?(?:{_MAIL}|제공))?\s?[\])>】]?"
)
_WRITER = re.compile(
    rf"(?:(?:글쓴이|작성자|올린이|등록자)\s?[:：]\s?|^\W{{0,3}}(?:글쓴이|작성자|기고자|기자명)\s"
    rf"(?={_NAME}\s{{0,3}}(?:$|\d|[|/]|작성일|등록일|날짜|입력|조회)))({_NAME})"
)
_COPYRIGHT = re.compile(rf"[ⓒ©]\s?(?:{_NAMES}\s?{_ROLE}|{_NAME})")
_NAME_OF_ROLE = re.compile(rf"((?:{_NAME}\s)?{_NAMES})\s?{_ROLE}")
_CLASS = re.compile(
    r"(?:^|[-_])(?:by-?line|author|writer|reporter|journalist|photo-?credit|credit|"
    r"photographer|contributor|기자)s?(?:[-_]?(?:name|info|box|wrap|area|meta))?$",
    re.IGNORECASE,
)
_META = (
    *("author", "article:author", "og:article:author", "dable:author", "dc.creator", "dc:creator"),
    *("dcterms.creator", "parsely-author", "sailthru.author", "byl", "twitter:creator"),
)
_DESKS = (
    r"(?:정치|사회|경제|문화|국제|산업|스포츠|체육|편집|보도|사진|디지털|온라인|전국|지역|생활|과학|"
    r"금융|증권|부동산|연예|논설|탐사|기획|외신|영상|뉴미디어|데이터)"
)
_NO_PERSON = re.compile(
    rf"^{_DESKS}(?:\w{{0,4}}(?:부|국|실))?$|^(?:워싱턴|뉴욕|도쿄|베이징|상하이|파리|런던|베를린|모스크바|"
    r"로스앤젤레스|LA|실리콘밸리|방콕|하노이|홍콩|브뤼셀|두바이|자카르타|선양|타이베이|뉴델리|카이로)$|"
    r"(?:팀|위원회|뉴스|일보|신문|방송|닷컴|미디어|통신|저널|데스크|센터|연구소|타임스|"
    r"타임즈|매거진|기자단|협회|재단)$|^(?:기자|작성자|글쓴이|관리자|운영자|운영진|편집자|필자|"
    r"저자|변호사|교수|박사|의원|대표|위원|원장|연구원|작가|평론가|소장|닉네임|이름|댓글|익명|비공개|입력|수정|등록|사진|제공|구독|admin\w*|administrator|root|"
    r"editor\w*|staff|guest|anonymous|unknown|user|webmaster|author|writer|reporter|newsroom|"
    r"none|null|undefined)$",
    re.IGNORECASE,
)
_AROUND = re.compile(
    rf"{_MAIL}|{_DATE}|\b{_ENGLISH_ROLE}\b|(?:^|\s)(?:글|취재|사진|작성자|글쓴이|Posted by|"
    r"Written by|By)\s?[:：=]?\s|https?://\S{1,200}",
    re.IGNORECASE,
)
_HANGUL = re.compile(r"[가-힣]{3,4}")
_END_OF_ROLE = re.compile(rf"\s?{_ROLE}$")
_SPLIT = re.compile(r"\s?[·,/|ㆍ&;]\s?|\s(?:and|및)\s")
_HANGUL_END = re.compile(r"[가-힣]$")
_PARTICLE = r"(?:이|가|은|는|을|를|의|에게|께서|와|과|도|만|씨|님)"


def person(text: object) -> str:
    """The name in what a page gives as an author; "" where that is none of a person.

    Roles, dates, addresses and marks around it are taken off.
    """
    if not isinstance(text, str) or len(text) > 4 * _LONGEST_BYLINE:
        return ""
    # RSS writes `mail@example.kr (Name)`.
    plain = _AROUND.sub(" ", " ".join(text.split()))
    plain = _END_OF_ROLE.sub("", plain.strip(" \t()[]<>【】|·=,:;@.-"))
    plain = plain.strip(" \t()[]<>【】|·=,:;@-")
    # A desk or a place may stand beside the name: `정치부 홍길동`, `홍길동 워싱턴`.
    words = [word for word in plain.split() if not _NO_PERSON.search(word)]
    hangul = [word for word in words if _HANGUL.fullmatch(word)]
    plain = hangul[-1] if hangul and len(words) <= 2 else " ".join(words)
    if not 2 <= len(plain) <= _LONGEST_NAME or len(plain.split()) > 4:
        return ""
    has_letters = sum(letter.isalpha() for letter in plain) >= 2
    return plain if has_letters and not _NO_PERSON.search(plain) else ""


def people(texts: Iterable[object]) -> tuple[str, ...]:
    """The names in several of them, each once; one text may hold several names."""
    parts = (part for text in texts if isinstance(text, str) for part in _SPLIT.split(text))
    names: dict[str, None] = {}
    for name in filter(None, map(person, parts)):
        names[name] = None
        if len(names) == _MOST_NAMES:
            break
    return tuple(names)


def authors_of(tree: Any, blocks: list[Any]) -> tuple[str, ...]:
    """Names of the authors of a parsed page (lxml), the most reliable first.

    blocks  its JSON-LD (`jsonld.blocks`)
    """
    site = {str(name).strip() for name in tree.xpath("//meta[@property='og:site_name']/@content")}
    return tuple(name for name in people(_given(tree, blocks)) if name not in site)


def drop_bylines(tree: Any) -> None:
    """Take the elements that hold nothing but a byline out of a parsed page."""
    for node in list(_elements(tree)):
        parent = node.getparent()
        if parent is not None and node.tag not in ("html", "body", "head", "article", "main"):
            node.drop_tree()


def without_bylines(text: str, names: Iterable[str] = ()) -> tuple[str, tuple[str, ...]]:
    """A text without bylines, and all names of its authors: `names` and those found in bylines."""
    authors: dict[str, None] = dict.fromkeys(names)
    lines = []
    for line in text.split("\n"):
        rest = _line(line, authors)
        if rest or not line:
            lines.append(rest)
    known = tuple(authors)
    return without_names("\n".join(lines), known), known


def without_names(text: str, names: Iterable[str]) -> str:
    """A text without these names, each with the role and the particle behind it."""
    for name in sorted(set(names), key=len, reverse=True):
        if len(name) < 2 or name not in text:
            continue
        behind = rf"(?:\s?{_ROLE})?(?:{_PARTICLE}(?!\w))?"
        if len(name) < 4 and _HANGUL_END.search(name):
            # A short name is the beginning of other words: nothing but a particle may follow.
            behind += r"(?!\w)"
        elif not _HANGUL_END.search(name):
            behind += r"(?![A-Za-z0-9])"
        text = re.sub(rf"(?<!\w){re.escape(name)}{behind}", "", text)
    return text


def _line(line: str, authors: dict[str, None]) -> str:
    """A line without what is a byline; names in that are added to the authors."""
    if len(line) <= _LONGEST_BYLINE:
        for pattern in (_LINE, _ENGLISH_LINE, _ENGLISH_ROLE_LINE):
            whole = pattern.fullmatch(line)
            if whole is not None:
                _note(whole[0] if pattern is _LINE else whole[1], authors)
                return ""
        if _DATE_LINE.fullmatch(line) or _MAIL_LINE.fullmatch(line):
            return ""
    rest = line
    for pattern in (_LEAD, _PLAIN_LEAD):
        lead = pattern.match(rest)
        if lead is not None:
            _note(lead[1], authors)
            rest = rest[lead.end() :]
    for pattern in (_CREDIT, _COPYRIGHT):
        rest = pattern.sub(" ", rest)
    for pattern in (_BRACKETS, _WRITER, *([_WITH_MAIL] if "@" in rest else ())):
        for byline in pattern.finditer(rest):
            _note(byline[1], authors)
        rest = pattern.sub(" ", rest)
    tail = _TAIL.search(rest[-_LONGEST_BYLINE:])
    if tail is not None:
        _note(tail[1], authors)
        rest = rest[: len(rest) - len(tail[0])]
    return line if rest == line else rest.strip()


def _note(byline: str, authors: dict[str, None]) -> None:
    authors |= dict.fromkeys(people(_NAME_OF_ROLE.findall(byline) or [byline]))


def _elements(tree: Any) -> Iterator[Any]:
    """Elements that are bylines: by class, id, itemprop or rel, and short."""
    wanted = tree.xpath("//body//*[@class or @id or @itemprop or @rel]")
    for node in wanted:
        if not isinstance(node.tag, str) or node.tag in ("meta", "link", "input", "form"):
            continue
        marks = f"{node.get('class') or ''} {node.get('id') or ''}".split()
        itemprop = (node.get("itemprop") or "").lower()
        by_name = itemprop in ("author", "creator") or node.get("rel") == "author"
        if not by_name and not any(_CLASS.search(mark) for mark in marks):
            continue
        if len(" ".join(node.text_content().split())) <= _LONGEST_ELEMENT:
            yield node


def _given(tree: Any, blocks: list[Any]) -> Iterator[object]:
    described = list(objects(blocks))
    by_id = {value["@id"]: value for value in described if isinstance(value.get("@id"), str)}
    for value in described:
        for key in ("author", "creator"):
            yield from _names_in(value.get(key), by_id)
    for meta in tree.xpath("//meta[@content]"):
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or ""
        content = meta.get("content")
        if name.lower() in _META and not content.startswith(("http://", "https://", "@")):
            yield content
    for node in _elements(tree):
        text = " ".join(node.text_content().split())
        named = node.xpath(".//*[@itemprop='name']")
        yield from (" ".join(name.text_content().split()) for name in named)
        roles = _NAME_OF_ROLE.findall(text)
        if roles:
            yield from roles
        elif node.get("itemprop") or node.get("rel") == "author" or not len(node):
            yield text


def _names_in(value: Any, by_id: Mapping[str, dict[str, Any]]) -> Iterator[object]:
    """Names of persons: texts, or objects that have a name or point at one that has."""
    for author in value if isinstance(value, list) else [value]:
        if isinstance(author, dict) and "@value" not in author:
            named = author if "name" in author else by_id.get(str(author.get("@id")), author)
            if "Organization" not in str(named.get("@type")):
                yield from texts_of(named.get("name"))
            yield from _names_in(author.get("@list"), {})
        else:
            yield from texts_of(author)
