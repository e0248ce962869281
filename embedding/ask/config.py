"""Which store is asked, and how its windows are compared."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from embedding.kernel.config import Config
from embedding.trends.config import TrendsConfig


class AxisConfig(Config):
    """An axis that a word's page shows: a name and the words of its two ends."""

    name: str = Field(min_length=1, max_length=40)
    """What the page calls it."""
    positive: tuple[str, ...] = Field(min_length=1)
    """Words of one end."""
    negative: tuple[str, ...] = Field(min_length=1)
    """Words of the other end."""


SENTIMENT = AxisConfig(
    name="sentiment",
    positive=(
        *("좋다", "훌륭하다", "최고", "만족", "감동", "행복", "기쁘다", "아름답다", "고맙다"),
        *("안전", "희망", "성공", "즐겁다", "뛰어나다", "믿다", "사랑", "편하다", "칭찬"),
        *("good", "great", "best", "love", "happy", "excellent", "wonderful", "safe", "hope"),
        *("success", "nice", "beautiful", "perfect", "enjoy"),
    ),
    negative=(
        *("나쁘다", "최악", "실망", "분노", "불안", "싫다", "슬프다", "밉다", "억울하다"),
        *("위험", "절망", "실패", "괴롭다", "형편없다", "두렵다", "고통", "불편", "비난"),
        *("bad", "terrible", "worst", "hate", "sad", "awful", "horrible", "danger", "fear"),
        *("failure", "poor", "ugly", "wrong", "angry"),
    ),
)


class AskConfig(Config):
    """Where answers come from."""

    snapshots: str = "var/snapshots"
    """Address of the snapshot store: a folder or an fsspec URL."""

    reports: Path | None = None
    """Folder of saved trend reports; a report that is not there is computed while serving."""

    evidence: Path | None = None
    """Folder of addresses of documents by word, which nodes write; None shows none."""

    axes: tuple[AxisConfig, ...] = (SENTIMENT,)
    """As in `[web]`."""

    refresh_s: float = Field(default=2.0, ge=0)
    """For this long the list of snapshots is not read again."""

    trends: TrendsConfig = TrendsConfig()
    """How windows are compared."""

    source_weights: dict[str, float] = Field(default_factory=dict)
    """Weights of sources in use."""
