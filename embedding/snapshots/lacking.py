"""What a snapshot lacks of its window: why, of which window, and what to do.

Whatever shows a window asks here, so that the same reason is given everywhere. The page says it
in its reader's language, by the same codes (`note_CODE` in the catalogues).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_UNJUDGED = "{label}: no word can be judged to have changed in meaning, as "
_AMEND = " `yeoron snapshot amend {label}` has it read again."
_SENTENCES = {
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
LACK_REASONS = tuple(_SENTENCES)


class Missing(BaseModel):
    """What a snapshot lacks of its window, and why."""

    model_config = ConfigDict(frozen=True)

    part: Literal["usage", "learning", "documents"]
    """`usage`: how words were used, without which nothing is compared; `learning`: it was cut
    before its nodes had learnt it to the end; `documents`: that came after the cut."""
    reason: str
    """Why, as a code of lower-case words joined by `_`; `where` and `documents` say of what."""
    where: tuple[str, ...] = ()
    """Nodes or sources."""
    documents: Annotated[int, Field(ge=0)] = 0
    """How many documents are concerned; 0: not known."""


def sentence(one: Missing, label: str) -> str:
    """Why, and what to do. label: of the window"""
    template = _SENTENCES.get(one.reason, _SENTENCES["other"])
    return template.format(
        label=label,
        where=", ".join(one.where) or "its nodes",
        documents=f"{one.documents:,}" if one.documents else "some",
        part=one.part,
        reason=one.reason,
    )
