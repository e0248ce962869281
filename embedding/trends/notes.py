"""What the codes of a report's notes are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embedding.trends.rows import TrendReport

BEFORE = "before_unjudged"
"""Of a window whose forerunner lacks how words were used."""
_UNJUDGED = ("usage_not_handed_in", "usage_limit", "node_lost", "document_gone")
_UNSURE = ("not_converged", "unread_model", "unread_vectors", "few_documents", "too_few_documents")
OF_MEANING = frozenset({BEFORE, *_UNJUDGED, *_UNSURE})
"""Those on words that moved, which say nothing of how often words are used."""


def judged(report: TrendReport) -> bool:
    """Whether nothing of how words were used in the window is known to be missing."""
    return not any(note.code in _UNJUDGED for note in report.notes)
