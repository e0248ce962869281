"""Whom listings call the author of a page that is still to be read; in memory alone."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 20_000
"""Addresses; of too many the first are forgotten."""


class NamedAuthors:
    """Names by address, from the listing to the page. The frontier has no place for them."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._held: dict[str, tuple[str, ...]] = {}

    def note(self, found: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        """A listing gave these authors to these addresses."""
        self._held |= {key: names for key, names in found if names}
        while len(self._held) > self._most:
            del self._held[next(iter(self._held))]

    def take(self, key: str) -> tuple[str, ...]:
        """The authors of an address, which are forgotten."""
        return self._held.pop(key, ())
