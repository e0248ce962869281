"""Finding a Chromium and the switches it is started with."""

from __future__ import annotations

import logging
import os
import shutil
from functools import cache
from pathlib import Path

from embedding.kernel.errors import FetchError

log = logging.getLogger(__name__)

NOT_WANTED = ("--disable-popup-blocking",)
"""Switches of Playwright's that are left out: pages open no windows by themselves."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium(configured: Path | None) -> str | None:
    """Executable to start: the configured one, else the system's; None: Playwright's own.

    Raises FetchError (`no_browser`) when the configured one is not there.
    """
    if configured is not None:
        if not os.access(configured, os.X_OK):
            raise FetchError(
                "no_browser", f"crawl.browser: {configured} is not an executable Chromium."
            )
        return str(configured)
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@cache
def sandboxed() -> bool:
    """Whether Chromium's sandbox is on. It has none for root; that is logged, once a process."""
    if os.geteuid() != 0:
        return True
    log.warning(
        "Chromium runs without its sandbox, because this is root: a hostile page that breaks out "
        "of it is root too. Run the platform as a user of its own (docs/concepts/security.md)."
    )
    return False


def chromium_flags() -> list[str]:
    """Switches: nothing in the background, and no way to the network of its own.

    All requests are answered by the crawler (`embedding.crawl.browser`), so names resolve to
    nothing and the proxy is a port that nobody can listen on: what slips past the interception,
    WebSockets and WebRTC included, reaches no host.
    """
    flags = [
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-default-apps",
        "--no-first-run",
        "--mute-audio",
        "--disable-breakpad",
        "--js-flags=--max-old-space-size=256",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--proxy-server=127.0.0.1:0",
        "--proxy-bypass-list=<-loopback>",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    ]
    return flags if sandboxed() else [*flags, "--no-sandbox"]
