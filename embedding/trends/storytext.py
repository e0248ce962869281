"""A story as lines of plain text: its title, its words by role, who wrote of it and where."""

from __future__ import annotations

from embedding.trends.findings import sureness
from embedding.trends.rows import ROLES, Story
from embedding.trends.stories import StoryDocuments
from embedding.trends.table import shortened

_SHOWN = 8
"""Words of one role that are named."""


def story_lines(story: Story, where: StoryDocuments | None = None) -> list[str]:
    """The first line is the title with how sure it is; the others are indented.

    where  documents of the story and their days; None: not known
    """
    lines = [f"{' · '.join(map(shortened, story.title))}   {sureness(story.q)}"]
    for role, words in story.by_role().items():
        more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
        lines.append(f"   {ROLES[role]}: {', '.join(map(shortened, words[:_SHOWN]))}{more}")
    days = ""
    if where is not None and where.first is not None and where.last is not None:
        days = f"; written {where.first:%Y-%m-%d} to {where.last:%Y-%m-%d}"
    sources = ", ".join(map(shortened, story.sources))
    lines.append(f"   since {story.first}{days}; {documents_of(story)}; {sources}")
    documents = () if where is None else where.documents
    return lines + [f"   {one.published:%Y-%m-%d}  {one.url}" for one in documents]


def documents_of(story: Story) -> str:
    """How many documents a story has and, where that is known, how many authors."""
    documents, authors = f"{story.documents:,} documents", story.most_used.authors
    if authors is not None:
        return f"{documents} by {authors:,} author{'s' if authors > 1 else ''}"
    if story.few_authors:
        return f"{documents} by few authors"
    return f"{documents} by {story.voices:,} authors or more" if story.voices > 1 else documents
