"""What a snapshot lacks of its window: why, of which window, and what to do.

Whatever shows a window asks here, so that the same reason is given everywhere. The page says it
in its reader's language, by the same codes (`note_CODE` in the catalogues).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedding.snapshots.usage import USAGE

if TYPE_CHECKING:
    from embedding.snapshots.format import Manifest, Missing

_UNJUDGED = "{label}: no word can be judged to have changed in meaning, as "
_AMEND = " `yeoron snapshot amend {label}` has it read again."
_REASONS = {
    "usage_not_handed_in": _UNJUDGED
    + "it was cut before {where} had sent how words were used in it."
    + _AMEND,
    "usage_limit": _UNJUDGED
    + "{where} needed longer than the limit to send how words were used in it."
    + _AMEND,
    "node_lost": _UNJUDGED + "{where} ended before sending how words were used in it." + _AMEND,
    "document_gone": _UNJUDGED
    + "{documents} of its documents could not be read again after a node had ended."
    + _AMEND,
    "not_converged": "{label}: it was cut before its model had learnt it to the end, so closest "
    "words are less sure. A longer server.convergence_seconds gives the next windows more time.",
    "late_documents": "{label}: {documents} documents came after it was cut and are not in it."
    + _AMEND,
    "other": "{label}: its snapshot lacks {part} ({reason})." + _AMEND,
}
"""By `Missing.reason`; `other` is for a reason that this version does not know."""
REASONS = tuple(_REASONS)


def missing_of(manifest: Manifest) -> tuple[Missing, ...]:
    """What a snapshot lacks: as its manifest says, of an older one as its figures and files show.

    Older ones say with `settled` that they were cut before their nodes had learnt the window.
    """
    from embedding.snapshots.format import Missing

    if manifest.missing or manifest.quality.get("settled") != 0.0:
        return manifest.missing
    server = manifest.config.get("server")
    kept = isinstance(server, dict) and server.get("usage", True)
    unlearnt = Missing(part="learning", reason="not_converged")
    if USAGE in manifest.files or not kept:
        return (unlearnt,)
    return (Missing(part="usage", reason="usage_not_handed_in"), unlearnt)


def can_be_judged(manifest: Manifest) -> bool:
    """Whether nothing of how words were used in the window is known to be missing."""
    return all(one.part != "usage" for one in missing_of(manifest))


def sentence(one: Missing, label: str) -> str:
    """Why, and what to do. label: of the window"""
    template = _REASONS.get(one.reason, _REASONS["other"])
    return template.format(
        label=label,
        where=", ".join(one.where) or "its nodes",
        documents=f"{one.documents:,}" if one.documents else "some",
        part=one.part,
        reason=one.reason,
    )


def sentences(manifest: Manifest) -> tuple[str, ...]:
    """One for each thing that a snapshot lacks."""
    return tuple(sentence(one, manifest.window.label) for one in missing_of(manifest))
