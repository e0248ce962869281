"""Addresses of pages and files under whatever prefix the application is mounted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

_LONGEST = 6000


@dataclass(frozen=True)
class PagePaths:
    """Builds absolute paths; `root` is the mount prefix without a final slash."""

    root: str
    version: str = ""

    def front(self) -> str:
        """The latest window."""
        return f"{self.root}/"

    def page(self, name: str) -> str:
        """A page by its name."""
        return f"{self.root}/{name}"

    def static(self, name: str) -> str:
        """A file shipped with the package; its version makes it safe to keep."""
        return f"{self.root}/static/{name}?v={self.version}"

    def window(self, snapshot: str) -> str:
        """A permanent link to the brief of one snapshot."""
        return f"{self.root}/window/{quote(snapshot, safe='')}"

    def handout(self, snapshot: str, format: str) -> str:  # noqa: A002
        """The report of one snapshot to hand on."""
        return f"{self.window(snapshot)}/report.{format}"

    def disagreement(self, snapshot: str) -> str:
        """The section of a brief on what sources disagree on, for a brief that came before it."""
        return f"{self.window(snapshot)}/disagreement"

    def csv(self, snapshot: str, ranking: str) -> str:
        """A ranking as CSV."""
        return f"{self.window(snapshot)}/{ranking}.csv"

    def word(self, word: str) -> str:
        """A word's page; empty when no browser would carry so long an address."""
        return self._word("word", word)

    def like(self, word: str) -> str:
        """Words that begin with these letters or hold them."""
        return self._query("search", like=word)

    def map(self, word: str) -> str:
        """A word's map; empty when no browser would carry so long an address."""
        return self._query("map", w=word)

    def compare(self, first: str, second: str = "", page: str = "compare") -> str:
        """Two words side by side; page `compare.csv` as CSV."""
        return self._query(page, a=first, b=second)

    def windows(self, then: str, now: str, ranking: str = "") -> str:
        """Two windows side by side, or one of their rankings as CSV."""
        page = f"windows/{ranking}.csv" if ranking else "windows"
        return self._query(page, then=then, now=now)

    def sources(self, first: str, second: str, id: str, page: str = "sources") -> str:  # noqa: A002
        """Two sources side by side; page `sources.csv` as CSV."""
        return self._query(page, a=first, b=second, id=id)

    def watch(self, words: Sequence[str]) -> str:
        """A watch list that others can open."""
        return f"{self.root}/watch?{urlencode([('w', word) for word in words])}"

    def axis(self, word: str, name: str) -> str:
        """A word's position on an axis, for its chart."""
        return self._query("api/axis", w=word, name=name)

    def since(self, word: str) -> str:
        """When a word changed, for its page."""
        return self._query("api/since", w=word)

    def word_csv(self, word: str) -> str:
        """A word's history as CSV."""
        return f"{self.root}/word.csv?{urlencode({'w': word})}"

    def word_json(self, word: str) -> str:
        """A word's history as JSON."""
        return self._word("api/word", word)

    def _query(self, page: str, **values: str) -> str:
        coded = urlencode({name: value for name, value in values.items() if value})
        return "" if len(coded) > _LONGEST else f"{self.root}/{page}?{coded}"

    def _word(self, base: str, word: str) -> str:
        coded = quote(word, safe="")
        if len(coded) > _LONGEST:
            return ""
        # A browser takes "." and ".." for folders, and servers decode %2F before they route.
        awkward = not word.strip(".") or "/" in word or "\\" in word
        return f"{self.root}/{base}?w={coded}" if awkward else f"{self.root}/{base}/{coded}"
