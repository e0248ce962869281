"""What runs are compared by: the same names for a snapshot's run and for a compared training's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from embedding.evaluation import gate
from embedding.snapshots.format import Manifest
from embedding_airflow.tracking import recording

TAG_PARAMS = ("policy", "model", "compression", "topology", "tokenizer", "corpus_digest")
"""Params that are tags too: MLflow filters and groups runs by these in its list."""


SYNC = ("staleness", "tau", "backups")
"""Settings of the policy that are params; which policy it is stands in `policy`."""


def params(manifest: Manifest) -> dict[str, object]:
    """What a snapshot was made with and from: at most 40, so that a comparison can be read.

    Every other setting is in the run's `manifest.json`. What the manifest does not know (an older
    one, a stream's corpus) is left out.
    """
    known = {
        "model": _at(manifest, "model", "model"),
        "dim": manifest.dim,
        "policy": _at(manifest, "sync", "policy"),
        **{name: _at(manifest, name) for name in ("compression", "topology", "tokenizer", "nodes")},
        "tokenizer_digest": manifest.tokenizer_digest,
        "source_mix": _mix(manifest.tokens),
        "corpus_digest": gate.corpus_digest(manifest),
        "config_digest": manifest.config_digest,
        "code_version": manifest.code_version,
    }
    return {
        **{name: value for name, value in known.items() if value not in (None, "")},
        **_settings(manifest, "model", known),
        **_settings(manifest, "sync", known, SYNC),
    }


def tags(params: Mapping[str, object]) -> dict[str, str]:
    """Those of `params` that are tags too."""
    return {f"yeoron.{name}": str(params[name]) for name in TAG_PARAMS if name in params}


def _settings(
    manifest: Manifest, section: str, left_out: Mapping[str, object], only: Sequence[str] = ()
) -> dict[str, object]:
    """The settings of a section as `config.SECTION.NAME`, without those that are `said`."""
    settings = manifest.config.get(section)
    flat = recording.flatten(settings) if isinstance(settings, Mapping) else {}
    return {
        f"config.{section}.{name}": value
        for name, value in flat.items()
        if name not in left_out and (not only or name in only)
    }


def _at(manifest: Manifest, *path: str) -> object:
    """One setting of the manifest; None where it has none."""
    value: object = manifest.config
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _mix(tokens: Mapping[str, int]) -> str | None:
    """Share of the window's tokens by source, as JSON; None of an empty window."""
    total = sum(tokens.values())
    mix = {source: round(n / total, 4) for source, n in sorted(tokens.items())} if total else {}
    return json.dumps(mix, ensure_ascii=False)[:4_000] if mix else None
