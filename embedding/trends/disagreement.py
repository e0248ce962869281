"""Which words any source of a window uses differently than all others together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from embedding.kernel.errors import InputError
from embedding.trends.config import TrendsConfig
from embedding.trends.contrast import ContrastRow, SourceContrasts
from embedding.trends.material import Snapshots


@dataclass(frozen=True)
class OddUse:
    """A word that `source` uses differently than all other sources.

    use  `first` is the source, `second` the others; q times the comparisons that were made
    """

    source: str
    use: ContrastRow


@dataclass(frozen=True)
class Disagreement:
    """What the sources of a window disagree on.

    sources   that were compared; uses: findings alone, surest first, each word once
    compared  words that were compared, of the source with most of them
    """

    snapshot: str
    label: str
    sources: tuple[str, ...]
    uses: tuple[OddUse, ...]
    compared: int


def disagreement(
    store: Snapshots,
    config: TrendsConfig | None = None,
    *,
    id: str = "latest",
) -> Disagreement:
    """Compare each source of snapshot `id` with all others together.

    q is multiplied by the number of comparisons, so looking at more sources finds no more by
    chance. Where one source differs, the others differ from the rest, too. So each word is listed
    with the source that differs most surely. Of two sources there is one comparison.

    Raises InputError for fewer than two sources and without sums of usage, SnapshotError when the
    snapshot cannot be read.
    """
    config = config or TrendsConfig()
    snapshot = store.open(id)
    names = sorted(snapshot.usage.by_source) if snapshot.usage is not None else []
    if len(names) < 2:
        raise InputError(
            f"snapshot {snapshot.id}: it says of fewer than two sources how they use words."
        )
    asked = names if len(names) > 2 else names[:1]
    found: dict[str, OddUse] = {}
    most = 0
    contrasts = SourceContrasts(snapshot, config)
    for name in asked:
        contrast = contrasts.of(name, None)
        most = max(most, contrast.compared)
        for row in contrast.rows:
            q = min(1.0, row.q * len(asked))
            known = found.get(row.word)
            if q <= config.false_discovery and (known is None or q < known.use.q):
                found[row.word] = OddUse(name, replace(row, q=q))
    uses = sorted(found.values(), key=lambda one: (one.use.q, one.use.word))
    return Disagreement(
        snapshot.id, snapshot.manifest.window.label, tuple(names), tuple(uses), most
    )
