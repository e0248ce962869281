"""A small grammar of Korean news sentences: topics, particles, patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Topic:
    """Nouns that occur together, with the verbs (past tense, taking an object) they go with."""

    name: str
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]


def _topic(name: str, nouns: str, verbs: str) -> Topic:
    return Topic(name, tuple(nouns.split()), tuple(verbs.split()))


TOPICS = (
    _topic(
        "경제",
        "금리 물가 은행 대출 환율 수출 기업 투자 주식 세금 예산 소비",
        "올렸다 내렸다 늘렸다 줄였다 발표했다 조정했다",
    ),
    _topic(
        "교육",
        "학교 학생 교사 시험 대학 입시 수업 교실 방학 졸업 숙제 장학금",
        "준비했다 가르쳤다 배웠다 마쳤다 시작했다 평가했다",
    ),
    _topic(
        "건강",
        "병원 의사 환자 백신 감염 치료 검사 간호사 약국 증상 수술 보건소",
        "진단했다 예방했다 확인했다 접종했다 관찰했다 처방했다",
    ),
    _topic(
        "교통",
        "도로 버스 지하철 운전 정류장 주차장 기차 철도 택시 터널 교차로 승객",
        "건넜다 막았다 기다렸다 지나갔다 점검했다 정비했다",
    ),
    _topic(
        "체육",
        "야구 축구 선수 감독 시합 심판 우승 관중 투수 득점 훈련 경기장",
        "이겼다 던졌다 응원했다 지켰다 격파했다 중계했다",
    ),
    _topic(
        "문화",
        "영화 미술관 공연 음악 가수 무대 소설 작가 전시회 관객 연극 노래",
        "불렀다 감상했다 연출했다 출판했다 연주했다 촬영했다",
    ),
)

_OPENINGS = ("어제", "오늘", "지난주", "이번 주", "올해", "최근", "다시", "")

# {0} {1} {2} are nouns; a particle in brackets is chosen by the syllable before it.
_PATTERNS = (
    "{0}[은] {1}[과] {2}[을] {verb}.",
    "{opening} {0}[이] {1}[을] {verb}.",
    "{0}에 관한 {1}[이] {2}[을] {verb}.",
    "{opening} {0}[과] {1} 때문에 {2}[을] {verb}.",
    "{0}의 {1}[은] {2}[을] 모두 {verb}.",
    "{opening} {0}에서 {1}[이] {2}[을] 새로 {verb}.",
)

# Particle after a consonant, after a vowel.
_PARTICLES = {"은": "는", "이": "가", "을": "를", "과": "와"}


def with_particles(text: str) -> str:
    """Replace [은] [이] [을] [과] by the form that fits the syllable before.

    A Hangul syllable ends in a consonant where (code − 0xAC00) mod 28 is not 0.
    """
    for closed, opened in _PARTICLES.items():
        pieces = text.split(f"[{closed}]")
        text = pieces[0]
        for piece in pieces[1:]:
            ends_closed = (ord(text[-1]) - 0xAC00) % 28 != 0
            text += (closed if ends_closed else opened) + piece
    return text


def sentence(
    rng: Random,
    topic: Topic,
    planted: str | None = None,
    replaced: Mapping[str, str] | None = None,
) -> str:
    """One sentence of a topic; `planted` takes the place of one of its nouns.

    `replaced` exchanges nouns (a source's own words for things).
    """
    nouns = rng.sample(topic.nouns, 3)
    if planted is not None:
        # One of the first two places: every pattern shows them.
        nouns[rng.randrange(2)] = planted
    nouns = [(replaced or {}).get(noun, noun) for noun in nouns]
    pattern = rng.choice(_PATTERNS)
    text = pattern.format(*nouns, opening=rng.choice(_OPENINGS), verb=rng.choice(topic.verbs))
    return with_particles(text.strip())


def headline(rng: Random, topic: Topic) -> str:
    """A headline of a topic."""
    first, second = rng.sample(topic.nouns, 2)
    return f"{first} {second} {rng.choice(('소식', '현황', '논란', '전망', '이야기'))}"
