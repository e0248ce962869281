"""Catalogues say all that the pages ask for, and nothing else."""

from __future__ import annotations

import re
import string
from functools import cache
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from embedding.show import team
from embedding.snapshots.format import LACK_REASONS
from embedding.trends.rows import BEFORE, RANKINGS
from embedding.web.text import (
    LANGUAGES,
    LOCALE,
    UNIT_KEYS,
    UNIT_WORDS,
    PageText,
    particle,
    unit_of,
)

ROOMS = Path(__file__).parents[2] / "embedding"
CODE = ROOMS / "web"
AUTOMATIC = {*UNIT_WORDS, *(name.capitalize() for name in UNIT_WORDS)}
NOTES = re.findall(
    r'Note\(\s*"(\w+)"',
    "".join(p.read_text() for p in (ROOMS / "trends").glob("*.py")),
)
NAMES = {
    *(f"note_{code}" for code in (*NOTES, *LACK_REASONS, BEFORE)),
    *(f"{name}_{unit}" for name in (*UNIT_WORDS, "span") for unit in UNIT_KEYS),
    *(f"{form}_{name}" for form in ("role", "said") for name in RANKINGS),
    *(f"{name}_{of}" for of in ("about", "between") for name in RANKINGS),
    *(f"headline_{state}" for state in ("gone", "login", "refused", "later", "none")),
    *RANKINGS,
}
"""Keys that are put together from the names of something."""


@cache
def texts(language: str) -> dict[str, tuple[str, ...]]:
    """The forms of every text, by key."""
    with (LOCALE / f"{language}.po").open("rb") as file:
        found = read_po(file, locale=language, abort_invalid=True)
    return {
        one.id[0] if isinstance(one.id, tuple) else one.id: (
            one.string if isinstance(one.string, tuple) else (one.string,)
        )
        for one in found
        if one.id
    }


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name} - AUTOMATIC


def code() -> str:
    """All that makes the pages."""
    named = [Path(team.__file__), ROOMS / "trends" / "report.py"]
    made = (*CODE.rglob("*.py"), *CODE.glob("templates/*.html"), *named)
    return "\n".join(p.read_text() for p in made)


def asked_for() -> set[str]:
    """Every word in quotes there."""
    # The glossary's terms and the steps of the tour are named without their prefix.
    named = set(re.findall(r"['\"]([a-z][a-z_0-9]*)['\"]", code()))
    return named | {f"{prefix}_{name}" for name in named for prefix in ("gloss", "note", "tour")}


def called() -> set[str]:
    """What the code surely asks a catalogue for: `t("key"` with the key written out."""
    return set(re.findall(r"\bt\(\s*['\"]([a-z][a-z_0-9]*)['\"]\s*[,)]", code()))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_missing_and_none_is_there_that_nobody_asks_for(language: str) -> None:
    have = set(texts(language))
    assert called() - have == set()
    assert NAMES - have == set()
    assert have - asked_for() - NAMES - {"language_name"} == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated_with_the_places_of_its_twin(language: str) -> None:
    english = texts("en")
    own = texts(language)
    assert own.keys() == english.keys()
    for key, forms in own.items():
        assert all(forms), key
        for form in forms:
            assert places(form) == places(english[key][-1]), key


@pytest.mark.parametrize("unit", UNIT_KEYS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_can_be_said_of_every_unit(language: str, unit: str) -> None:
    t = PageText(language, unit)
    for key, forms in texts(language).items():
        said = t(key, **dict.fromkeys(places(forms[-1]), "3"))
        assert said
        assert "{" not in said, key


def test_the_windows_are_called_what_they_are() -> None:
    assert PageText("ko", "day")("lede_none").startswith("이날 변화는")
    assert PageText("ko", "month")("lede_none").startswith("이번 달 변화는")
    assert PageText("en", "week")("lede_none") == "This week’s changes are no larger than usual."
    assert [PageText("en", "month").span(n) for n in (1, 3)] == ["1 month", "3 months"]
    assert "달을" in PageText("ko", "month")("windows_about")
    assert "주를" in PageText("ko", "week")("windows_about")


@pytest.mark.parametrize(
    ("label", "unit"),
    [
        ("2020-02", "month"),
        ("2020-02-03", "day"),
        ("2020-02-03T04", "hour"),
        ("20200203T0000_20200210T0000", "week"),
        ("20200203T0000_20200204T1200", "period"),
        ("anything", "period"),
    ],
)
def test_the_unit_is_read_off_the_label(label: str, unit: str) -> None:
    assert unit_of(label) == unit


@pytest.mark.parametrize(("word", "said"), [("코로나", "를"), ("일본", "을"), ("K-pop", "을(를)")])
def test_the_particle_follows_the_last_letter(word: str, said: str) -> None:
    assert particle(word, "을", "를") == said


def test_a_number_chooses_its_form() -> None:
    t = PageText("en")
    assert (t("in_documents", n="1"), t("in_documents", n="1,201")) == (
        "1 document",
        "1,201 documents",
    )


def test_loss_and_nats_are_on_the_page_of_whoever_runs_it_alone() -> None:
    for page in (CODE / "templates").glob("*.html"):
        if page.name != "snapshots.html":
            keys = re.findall(r"['\"]([a-z_0-9]+)['\"]", page.read_text())
            said = " ".join(texts("en").get(key, ("",))[-1] for key in keys)
            assert not re.search(r"\bnats\b|\b[Ll]oss\b", said), page.name
