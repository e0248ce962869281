"""Configuration of the trend report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, field_validator

from embedding.kernel.config import Config
from embedding.trends.estimators import ESTIMATORS

EstimatorName = Annotated[str, AfterValidator(ESTIMATORS.check)]
"""Name of a registered estimator."""


class TrendsConfig(Config):
    """How two windows are compared and how much of it is reported."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "candidate_words": "leave it out: it is 10,000",
        "anchor_words": "leave it out: procrustes takes 5,000",
        "anchor_rounds": "leave it out: procrustes fits three times",
        "anchor_share": "leave it out: procrustes keeps four fifths of its anchors",
        "series_windows": "leave it out: a series has 12 windows",
        "block_rows": "leave it out: it is 1,024",
        "band_words": "leave it out: it is 400",
        "prior_documents": "leave it out: it is 200",
    }

    estimator: EstimatorName = "usage"
    """What ranks the moved words: usage, neighbours or procrustes, or one
    that another package adds (docs/extending.md). usage judges words
    by the documents that use them, and by neighbours where a snapshot does not say how words were
    used."""

    neighbours: int = Field(default=50, ge=2, le=1000)
    """k: how many nearest words of each snapshot an estimator looks at."""

    min_count: int = Field(default=20, ge=1)
    """A word is ranked as moved when it occurs this often in the window and had been read this
    often when the earlier snapshot was cut."""

    min_documents: int = Field(default=5, ge=1)
    """A word is ranked as risen or fallen when at least this many documents of a window hold it,
    and as born in the window in which so many hold it for the first time, all together."""

    min_sources: int = Field(default=1, ge=1)
    """A born word must occur in at least this many sources."""

    false_discovery: float = Field(default=0.05, gt=0, lt=1)
    """A row is called significant when its q value is at most this."""

    control: Literal["window", "stream"] = "window"
    """What false_discovery is the share of: the words that one window calls, or, over the life of a
    stream, the windows that call any (LORD++, `trends/online.py`). stream calls less."""

    rows: int = Field(default=50, ge=1, le=10_000)
    """Rows kept in each ranking."""

    skip: str = r"[\W\d_]*|<[a-z_-]+>"
    """Words that this regular expression matches in full are never ranked: numbers, signs, and
    the marks that stand for masked data."""

    # Constants: a file that sets one is refused.
    # A word is born when at least min_documents hold it, all windows together, and it was first
    # read at most this many windows before.
    born_windows: ClassVar = 12
    # Document frequencies are compared with this many windows before the reported one, together:
    # one is often too little to tell a rise from chance.
    baseline_windows: ClassVar = 3
    shown_neighbours: ClassVar = 10  # Nearest words kept as evidence for each row.
    # A word's history covers at most this many of the latest windows.
    history_windows: ClassVar = 60
    # η: how far one proposal of source weights goes, for each nat that a source's loss is above the
    # mean.
    bias_step: ClassVar = 5.0
    bias_most: ClassVar = 4.0  # No proposed weight is above this, nor below one divided by it.
    # By which part of it proposed weights may raise the mean loss over that without weights, as it
    # is predicted; weights in use go back towards 1 when more than this was measured.
    bias_rise: ClassVar = 0.01

    @field_validator("skip")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression ({error})") from error
        return value
