"""Addresses of pages and files under whatever prefix the application is mounted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from embedding.snapshots.evidence import Evidence
from embedding.trends.stories import LOOKED_FOR

FEED = "/feed.atom"
_LONGEST = 6000


@dataclass(frozen=True)
class PagePaths:
    """Builds absolute paths.

    root    the mount prefix without a final slash
    kept    names and values that every link to a page keeps (filters.py)
    """

    root: str
    version: str = ""
    kept: tuple[tuple[str, str], ...] = ()

    def front(self) -> str:
        """The latest window."""
        return self._keeping(f"{self.root}/")

    def view(self, name: str) -> str:
        """A page by its name, with the filter kept."""
        return self._keeping(self.page(name))

    def page(self, name: str) -> str:
        return f"{self.root}/{name}"

    def static(self, name: str) -> str:
        """A file shipped with the package; its version makes it safe to keep."""
        return f"{self.root}/static/{name}?v={self.version}"

    def window(self, snapshot: str) -> str:
        """A permanent link to the brief of one snapshot."""
        return self._keeping(self._window(snapshot))

    def handout(self, snapshot: str, format: str) -> str:
        """The report of one snapshot to hand on."""
        return f"{self.window(snapshot)}/report.{format}"

    def disagreement(self, snapshot: str) -> str:
        """The section of a brief on what sources disagree on, for a brief that came before it."""
        return self._keeping(f"{self._window(snapshot)}/disagreement")

    def timeline(self, snapshot: str) -> str:
        """The line of windows around one snapshot, once all of them are analysed."""
        return self._keeping(f"{self._window(snapshot)}/timeline")

    def csv(self, snapshot: str, ranking: str) -> str:
        return self._keeping(f"{self._window(snapshot)}/{ranking}.csv")

    def word(self, word: str) -> str:
        """A word's page; empty when no browser would carry so long an address."""
        return self._word("word", word)

    def like(self, word: str) -> str:
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

    def sources(self, first: str, second: str, id: str, page: str = "sources") -> str:
        """Two sources side by side; page `sources.csv` as CSV."""
        return self._query(page, a=first, b=second, id=id)

    def watch(self, words: Sequence[str]) -> str:
        return self._keeping(f"{self.root}/watch?{urlencode([('w', word) for word in words])}")

    def over(self, words: Sequence[str]) -> str:
        return self._keeping(f"{self.root}/over?{urlencode([('w', word) for word in words])}")

    def axis(self, word: str, name: str) -> str:
        return self._query("api/axis", w=word, name=name)

    def headline(self, document: Evidence, words: Sequence[str]) -> str:
        """The headline of a document that one of these words led to."""
        day = document.published.isoformat()
        asked = [("u", document.url), ("d", day), *(("w", word) for word in words[:LOOKED_FOR])]
        return f"{self.root}/api/headline?{urlencode(asked)}"

    def since(self, word: str) -> str:
        return self._query("api/since", w=word)

    def word_csv(self, word: str) -> str:
        return self._keeping(f"{self.root}/word.csv?{urlencode({'w': word})}")

    def word_json(self, word: str) -> str:
        return self._word("api/word", word)

    def _query(self, page: str, **values: str) -> str:
        coded = urlencode({name: value for name, value in values.items() if value})
        if len(coded) > _LONGEST:
            return ""
        path = f"{self.root}/{page}?{coded}"
        return path if page.startswith("api/") else self._keeping(path)

    def _word(self, base: str, word: str) -> str:
        coded = quote(word, safe="")
        if len(coded) > _LONGEST:
            return ""
        # A browser takes "." and ".." for folders, and servers decode %2F before they route.
        awkward = not word.strip(".") or "/" in word or "\\" in word
        path = f"{self.root}/{base}?w={coded}" if awkward else f"{self.root}/{base}/{coded}"
        return path if base.startswith("api/") else self._keeping(path)

    def _window(self, snapshot: str) -> str:
        return f"{self.root}/window/{quote(snapshot, safe='')}"

    def _keeping(self, path: str) -> str:
        if not self.kept:
            return path
        return f"{path}{'&' if '?' in path else '?'}{urlencode(self.kept)}"
