"""Addresses of pages and files under whatever prefix the application is mounted."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

LONGEST = 6000


@dataclass(frozen=True)
class Links:
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

    def csv(self, snapshot: str, ranking: str) -> str:
        """A ranking as CSV."""
        return f"{self.window(snapshot)}/{ranking}.csv"

    def word(self, word: str) -> str:
        """A word's page; empty when no browser would carry so long an address."""
        return self._word("word", word)

    def word_csv(self, word: str) -> str:
        """A word's history as CSV."""
        return f"{self.root}/word.csv?{urlencode({'w': word})}"

    def word_json(self, word: str) -> str:
        """A word's history as JSON."""
        return self._word("api/word", word)

    def _word(self, base: str, word: str) -> str:
        coded = quote(word, safe="")
        if len(coded) > LONGEST:
            return ""
        # A browser takes "." and ".." for folders, and servers decode %2F before they route.
        awkward = not word.strip(".") or "/" in word or "\\" in word
        return f"{self.root}/{base}?w={coded}" if awkward else f"{self.root}/{base}/{coded}"
