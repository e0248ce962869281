"""XML of the news site: RSS 2.0, Atom (RFC 4287), news sitemaps and their index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.utils import format_datetime
from xml.sax.saxutils import escape

from yeoron_simweb.library import LibraryItem, shortened
from yeoron_simweb.markup import PAPER, SECTION_NAMES

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_SUMMARY = 120


def _xml(text: str) -> str:
    """Text for an XML element: what XML 1.0 cannot hold is left out."""
    return escape(_FORBIDDEN.sub("", text), {'"': "&quot;"})


def rss(items: Sequence[LibraryItem], base: str, path: str, charset: str = "utf-8") -> str:
    """RSS 2.0 with full titles and a summary; newest first as given."""
    entries = "".join(
        f"<item><title>{_xml(item.title)}</title><link>{base}/news/a/{item.id}</link>"
        f'<guid isPermaLink="true">{base}/news/a/{item.id}</guid>'
        f"<pubDate>{format_datetime(item.moment)}</pubDate>"
        f"<category>{SECTION_NAMES[item.part]}</category>"
        f"<description>{_xml(shortened(item.text, _SUMMARY))}</description></item>\n"
        for item in items
    )
    built = f"<lastBuildDate>{format_datetime(items[0].moment)}</lastBuildDate>" if items else ""
    return (
        f'<?xml version="1.0" encoding="{charset}"?>\n'
        '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>\n'
        f"<title>{PAPER}</title><link>{base}/news</link>"
        f'<atom:link href="{base}{path}" rel="self" type="application/rss+xml"/>'
        f"<description>{PAPER} 최신 기사</description><language>ko</language>{built}\n"
        f"{entries}</channel></rss>\n"
    )


def atom(items: Sequence[LibraryItem], base: str, path: str, charset: str = "utf-8") -> str:
    """Atom with a summary; newest first as given."""
    entries = "".join(
        f"<entry><title>{_xml(item.title)}</title><id>{base}/news/a/{item.id}</id>"
        f'<link rel="alternate" href="{base}/news/a/{item.id}"/>'
        f"<published>{item.iso}</published><updated>{item.iso}</updated>"
        f"<author><name>{_xml(item.author)}</name></author>"
        f'<summary type="text">{_xml(shortened(item.text, _SUMMARY))}</summary></entry>\n'
        for item in items
    )
    updated = items[0].iso if items else "1970-01-01T00:00:00+00:00"
    return (
        f'<?xml version="1.0" encoding="{charset}"?>\n'
        '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="ko">\n'
        f'<title>{PAPER}</title><id>{base}{path}</id><link rel="self" href="{base}{path}"/>'
        f'<link rel="alternate" href="{base}/news"/><updated>{updated}</updated>\n'
        f"{entries}</feed>\n"
    )


def news_sitemap(items: Sequence[LibraryItem], base: str, charset: str = "utf-8") -> str:
    """A sitemap with news:news entries and lastmod; newest first as given."""
    entries = "".join(
        f"<url><loc>{base}/news/a/{item.id}</loc><lastmod>{item.iso}</lastmod>"
        f"<news:news><news:publication><news:name>{PAPER}</news:name>"
        "<news:language>ko</news:language></news:publication>"
        f"<news:publication_date>{item.iso}</news:publication_date>"
        f"<news:title>{_xml(item.title)}</news:title></news:news></url>\n"
        for item in items
    )
    return _urlset(entries, "news", "sitemap-news/0.9", charset)


def picture_sitemap(items: Sequence[LibraryItem], base: str, charset: str = "utf-8") -> str:
    """A sitemap with image:image entries, which says no times."""
    entries = "".join(
        f"<url><loc>{base}/news/a/{item.id}</loc><image:image>"
        f"<image:loc>{base}/news/photo/{item.id}.jpg</image:loc>"
        f"<image:title>{_xml(item.title)}</image:title></image:image></url>\n"
        for item in items
    )
    return _urlset(entries, "image", "sitemap-image/1.1", charset)


def _urlset(entries: str, prefix: str, schema: str, charset: str) -> str:
    return (
        f'<?xml version="1.0" encoding="{charset}"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
        f'xmlns:{prefix}="http://www.google.com/schemas/{schema}">\n{entries}</urlset>\n'
    )


def sitemap_index(addresses: Sequence[str]) -> str:
    """A sitemap index of these absolute addresses."""
    entries = "".join(f"<sitemap><loc>{_xml(url)}</loc></sitemap>\n" for url in addresses)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}'
        "</sitemapindex>\n"
    )
