"""Chromium's sandbox: on for a user, off for root, and then that is said."""

from __future__ import annotations

import logging
import os

import pytest

from embedding.crawl.chromium_process import chromium_flags, sandboxed


@pytest.mark.parametrize(("user", "on"), [(1000, True), (0, False)])
def test_a_browser_without_a_sandbox_is_said_once(monkeypatch, caplog, user: int, on: bool) -> None:
    sandboxed.cache_clear()
    monkeypatch.setattr(os, "geteuid", lambda: user)
    try:
        with caplog.at_level(logging.WARNING, logger="embedding.crawl.chromium_process"):
            assert [sandboxed() for _ in range(3)] == [on] * 3
            flags = chromium_flags()
            assert ("--no-sandbox" in flags) is not on
            assert {"--disable-gpu", "--disable-background-networking", "--disable-sync"} < {*flags}
        said = [line for line in caplog.messages if "without its sandbox" in line]
        assert len(said) == (0 if on else 1)
    finally:
        sandboxed.cache_clear()
