"""The names under which the crawler counts what failed, was left out or was dated by a guess."""

from __future__ import annotations

REASONS = {
    "bad_encoding": "Broken compression, or a text that fits none of its encodings.",
    "connect": "No connection.",
    "date_fetched": "Dated by when it was fetched, as `undated` of its source says.",
    "date_guess": "Dated by what looks like a date in the page's text or address: a guess.",
    "date_lastmod": "Dated by when the sitemap says that the page was changed last.",
    "dns": "The name does not resolve.",
    "duplicate": "The same text was read under another address.",
    "empty": "The page or listing holds no text.",
    "foreign_host": "The search for new sources was led off the allowed hosts.",
    "host_busy": "The host wants a long pause; the page is tried again later and not counted.",
    "host_down": "The host rests after failures; the page is tried again later and not counted.",
    "http_1xx": "A status from 100 to 199, which is no answer to a request.",
    "http_3xx": "A status from 300 to 399 that leads nowhere.",
    "http_4xx": "A status from 400 to 499: the site refuses.",
    "http_5xx": "A status from 500 to 599: the site fails.",
    "internal": "A defect of Yeoron: please report it.",
    "login": "The source wants a login: a password, or a right that is missing.",
    "near_duplicate": "Nearly the same text was read under another address.",
    "no_browser": "A rendered source without a Chromium; it is skipped.",
    "not_html": "An image or another file that is no page.",
    "parse": "The page or listing cannot be read.",
    "port": "An address at a port of another service than the web.",
    "private_address": "A private address, which the crawler never asks.",
    "protocol": "The answer is not a valid HTTP exchange.",
    "redirect_loop": "A circle of redirects, too many of them, or one to no web address.",
    "render": "The browser could not show the page.",
    "robots": "robots.txt forbids the page.",
    "robots_unreadable": "robots.txt cannot be read, so no page may be.",
    "timeout": "No full answer in time.",
    "too_large": "More bytes than `crawl.max_bytes`.",
    "undated": "No date that can be read, or one yet to come: in no window, until `undated` of its "
    "source says what to take.",
}
"""Name → meaning."""

EVENTS = {
    "blocked": "The source refuses: 4xx or robots.txt.",
    "unreachable": "No usable answer: names, connections, timeouts, 5xx.",
    "page_changed": "The source answers, but five listings in a row name nothing or cannot be "
    "read, or twenty pages in a row hold no text.",
    "empty": "All works, and far fewer new items come than usual.",
    "undated": "Nothing of the source can be dated, so nothing of it is in a window.",
}
"""Alarm of a source → when it is raised."""
