"""Links as pages, feeds and answers write them, made whole."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit


def join(base: str, link: str | None) -> str:
    """The http or https address that `link` means on the page `base`; "" when it means none.

    One link that cannot be read must never cost the others.
    """
    written = (link or "").strip()
    if not written:
        return ""
    try:
        whole = urljoin(base, written)
        parts = urlsplit(whole)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
        return whole if sound and (parts.port is None or parts.port > 0) else ""
    except ValueError:
        return ""
