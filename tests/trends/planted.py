"""A synthetic stream of snapshots with changes of known word, window and kind.

Vectors: every word is a topic's centre plus its own direction plus noise of the window that is
larger for rare words; every snapshot is turned by another random rotation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from embedding.exchange.payload import UNITS
from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage

TOPICS = {
    "바이러스": "감염 확진 백신 격리 의료 검역 환자 전염 병원 폐렴 증상 방역",
    "정치": "국회 장관 청와대 대통령 정당 의원 선거 여당 야당 후보 법안 탄핵",
    "무역": "수출 수입 관세 반도체 기업 경제 환율 시장 주가 투자 금리 공장",
    "영화": "배우 감독 연기 장면 극장 관객 대본 상영 흥행 결말 예매 주연",
    "학교": "학생 교사 수업 시험 교실 등록금 대학 입시 숙제 급식 방학 졸업",
    "교통": "버스 지하철 택시 도로 운전 신호 사고 면허 주차 고속 요금 기차",
}
SYLLABLES = "가나다라마바사아자차카타파하고노도로모보소오조초구누두루무부수우주추"


@dataclass(frozen=True)
class Plan:
    """What to plant: see the fields; windows are numbered from 0."""

    windows: int = 4
    fillers: int = 600
    dim: int = 24
    seed: int = 1
    documents: Mapping[str, int] = field(
        default_factory=lambda: {"뉴스": 3000, "게시판": 2000, "댓글": 1500}
    )
    moved: Mapping[str, tuple[str, str, int]] = field(
        default_factory=lambda: {"코로나": ("영화", "바이러스", 3)}
    )
    born: Mapping[str, tuple[str, int]] = field(default_factory=lambda: {"신천지": ("바이러스", 3)})
    risen: Mapping[str, int] = field(default_factory=lambda: {"마스크": 3})
    lone: Mapping[str, tuple[str, int]] = field(default_factory=lambda: {"도배": ("게시판", 3)})
    extra: Sequence[str] = ()
    rotate: bool = True


def window(number: int) -> Window:
    """The month `number` months after November 2019."""
    months = 2019 * 12 + 10 + number
    return Window.holding(datetime(months // 12, months % 12 + 1, 5, tzinfo=UTC), WindowUnit.MONTH)


def source_usage(
    n: int, dim: int, sources: Sequence[str], odd: tuple[str, int] | None = None
) -> Usage:
    """n words that all sources use alike, but for one word of one source: (source, row)."""
    random = np.random.default_rng(3)
    true = random.normal(size=(n, dim))
    means = np.stack([true] * len(sources))
    if odd is not None:
        means[sources.index(odd[0]), odd[1]] = -2.0 * true[odd[1]]
    documents = random.integers(2, 8, (len(sources) * n, UNITS)).astype(np.float32)
    noise = random.normal(size=(len(sources) * n, UNITS, dim)) / np.sqrt(documents)[..., None]
    return Usage(
        rows=np.tile(np.arange(n), len(sources)),
        sources=[source for source in sources for _ in range(n)],
        mentions=np.full(len(sources) * n, 60),
        pairs=documents,
        means=(means.reshape(-1, 1, dim) + noise).astype(np.float32),
    )


def make_store(uri: str, plan: Plan | None = None) -> SnapshotStore:
    """Publish one snapshot a window."""
    store = SnapshotStore(uri)
    parent = None
    for data in stream(plan or Plan()):
        parent = store.publish(_with_parent(data, parent)).id
    return store


def _with_parent(data: SnapshotData, parent: str | None) -> SnapshotData:
    return SnapshotData(**{**vars(data), "parent": parent})


def stream(plan: Plan) -> list[SnapshotData]:
    """The snapshots' content, oldest first."""
    rng = np.random.default_rng(plan.seed)
    topics, frequency = _vocabulary(plan, rng)
    centres = {name: _direction(plan.dim, rng) for name in TOPICS}
    own = {word: _direction(plan.dim, rng) * 0.9 for word in topics}
    return [_snapshot(at, plan, topics, frequency, centres, own, rng) for at in range(plan.windows)]


def _direction(dim: int, rng: np.random.Generator) -> np.ndarray:
    """A vector of length √dim: no word is harder to place than another."""
    vector = rng.standard_normal(dim)
    return vector * np.sqrt(dim) / np.linalg.norm(vector)


def _vocabulary(plan: Plan, rng: np.random.Generator) -> tuple[dict[str, str], dict[str, float]]:
    """Topic of each word and share of documents that hold it."""
    topics = {word: topic for topic, words in TOPICS.items() for word in [topic, *words.split()]}
    names = list(TOPICS)
    while len(topics) < len(TOPICS) * 13 + plan.fillers:
        word = "".join(rng.choice(list(SYLLABLES), size=int(rng.integers(2, 5))))
        topics.setdefault(word, names[int(rng.integers(len(names)))])
    for word in (*plan.moved, *plan.born, *plan.risen, *plan.lone, *plan.extra):
        topics[word] = names[0]
    for word, (topic, _, _) in plan.moved.items():
        topics[word] = topic
    rank = rng.permutation(len(topics)) + 8.0
    shares = {word: float(min(1.6 / r, 0.3)) for word, r in zip(topics, rank, strict=True)}
    shares |= dict.fromkeys((*plan.moved, *plan.extra), 0.03)
    return topics, shares | dict.fromkeys((*plan.risen, *plan.lone), 0.01)


def _snapshot(at, plan, topics, frequency, centres, own, rng) -> SnapshotData:
    words = [w for w in topics if plan.born.get(w, ("", 0))[1] <= at]
    shares = np.asarray([_share(w, at, plan, frequency) for w in words])
    rows = {"words": [], "sources": [], "counts": [], "documents": []}
    running = np.zeros(len(words), dtype=np.int64)
    for source, documents in plan.documents.items():
        factor = np.asarray([_boost(w, source, at, plan) for w in words])
        held = rng.binomial(documents, np.clip(shares * factor, 0, 0.9))
        counts = (held * 1.4).astype(np.int64)
        running += counts * (at + 1)
        rows["words"] += words
        rows["sources"] += [source] * len(words)
        rows["counts"] += counts.tolist()
        rows["documents"] += held.tolist()
    vectors = np.empty((len(words), plan.dim))
    for i, word in enumerate(words):
        topic = topics[word]
        if word in plan.moved and at >= plan.moved[word][2]:
            topic = plan.moved[word][1]
        noise = rng.standard_normal(plan.dim) * (0.15 + 1.5 / np.sqrt(running[i] + 10))
        vectors[i] = centres[topic] * 1.2 + own[word] + noise
    if plan.rotate:
        vectors = vectors @ np.linalg.qr(rng.standard_normal((plan.dim, plan.dim)))[0]
    start = window(at).start.timestamp()
    return SnapshotData(
        window=window(at),
        words=words,
        ids=np.arange(len(words), dtype=np.int64),
        counts=running,
        last_seen=np.full(len(words), start),
        vectors=vectors.astype(np.float32),
        contexts=vectors[::-1].astype(np.float32),
        by_source=WordCounts(
            words=rows["words"],
            sources=rows["sources"],
            windows=np.full(len(rows["words"]), int(start), dtype=np.int64),
            counts=np.asarray(rows["counts"], dtype=np.int64),
            documents=np.asarray(rows["documents"], dtype=np.int64),
        ),
        tokens={source: 60 * n for source, n in plan.documents.items()},
        documents=dict(plan.documents),
        tokenizer_digest="t1",
    )


def _share(word: str, at: int, plan: Plan, frequency: Mapping[str, float]) -> float:
    if word in plan.born:
        return 0.04 - 0.005 * [*plan.born].index(word)
    if word in plan.risen and at >= plan.risen[word]:
        return frequency[word] * 8
    return frequency[word]


def _boost(word: str, source: str, at: int, plan: Plan) -> float:
    only, since = plan.lone.get(word, ("", 0))
    return 20.0 if word in plan.lone and source == only and at >= since else 1.0
