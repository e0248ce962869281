"""One running Chromium: its Playwright handle, its processes, their memory, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Coroutine
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from embedding.kernel.errors import FetchError
from embedding.kernel.processes import end_all

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright

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


log = logging.getLogger(__name__)

Done = TypeVar("Done")

CLOSING = 3.0
"""Seconds that anything of a browser may take to close before it is killed."""
_STARTING = 60.0
_LOOK = 0.5
"""Seconds between two looks whether the browser still runs."""
_MARK = "--yeoron-browser="

_SCRIPT = 'read -r x; [ "$x" = let ] && exit; kill -9 "-$1"; kill -9 "$2"; rm -rf -- "$3" "$4"'
_PATIENCE = 5.0


class Watchdog:
    """Ties the process group `group` and the process `driver` to this process.

    No browser outlives its crawler, however the crawler ends. Playwright's driver closes Chromium
    when its own standard input ends, but one that is stopped or killed together with the crawler
    does not. The tether is a shell in a session of its own that reads from a pipe: when nobody
    holds the other end any more, it kills the browser's process group and the driver, and removes
    the folders in which it wrote.
    """

    def __init__(self, group: int, driver: int, folders: tuple[Path, Path]) -> None:
        self._shell = subprocess.Popen(  # noqa: S603  (a fixed script; numbers and one path)
            ["/bin/sh", "-c", _SCRIPT, "sh", str(group), str(driver), *map(str, folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """The processes have ended by themselves: kill nothing, as their numbers may be reused."""
        with contextlib.suppress(OSError, ValueError):
            self._shell.communicate(b"let\n", timeout=_PATIENCE)
        if self._shell.poll() is None:
            self._shell.kill()
            self._shell.wait()


class BrowserFailedError(Exception):
    """The browser failed at a page: through another page, or through this one.

    Playwright raises many different errors when a page, its process or the browser is gone. So any
    error of it counts as one.
    """


class ChromiumProcess:
    """A Chromium and the driver that speaks to it. Both end with `end`, and with this process."""

    def __init__(
        self, playwright: Playwright, browser: Browser, main: psutil.Process, home: Path
    ) -> None:
        self.browser = browser
        self.pages = 0
        """Pages shown so far."""
        self.memory = 0
        """Bytes at the last `measure`."""
        self._playwright = playwright
        self._opening: set[asyncio.Task[Page]] = set()
        self._main = main
        self._driver = main.parent()
        # The profile folder, made by Playwright for this browser alone.
        name = "--user-data-dir="
        profile = next(word for word in main.cmdline() if word.startswith(name))
        self._folders = (Path(profile.removeprefix(name)), home)
        self._watchdog = Watchdog(main.pid, self._driver.pid if self._driver else 0, self._folders)

    @classmethod
    async def start(cls, executable: Path | None) -> ChromiumProcess:
        """Start one; raises FetchError (`no_browser`, or `timeout` on a busy machine)."""
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError as error:
            raise FetchError(
                "no_browser", "Playwright is not installed; install the extra `render`."
            ) from error
        chromium = find_chromium(executable)
        playwright: Playwright | None = None
        home = Path(tempfile.mkdtemp(prefix="yeoron-chromium-"))
        try:
            async with asyncio.timeout(_STARTING):
                playwright = await async_playwright().start()
                return await _launch(playwright, chromium, home)
        except BaseException as error:
            shutil.rmtree(home, ignore_errors=True)
            if playwright is not None:
                await quietly(playwright.stop())
            if isinstance(error, TimeoutError):
                raise FetchError(
                    "timeout", "Chromium took too long to start.", retry_after=0
                ) from error
            if isinstance(error, Error | OSError):
                raise FetchError(
                    "no_browser",
                    "no Chromium could be started: install `chromium`, run `playwright install "
                    "chromium`, or set crawl.browser; rendered sources are skipped.",
                ) from error
            raise

    @property
    def lost(self) -> bool:
        """Whether it crashed or was killed."""
        ended = not _runs(self._main) or not (self._driver is None or _runs(self._driver))
        return ended or not self.browser.is_connected()

    async def doing(self, something: Coroutine[Any, Any, Done]) -> Done:
        """Await `something`; raises BrowserFailedError where the browser fails or ends.

        Playwright may leave a call without an answer when the browser dies beneath it.
        """
        from playwright.async_api import Error

        task = asyncio.create_task(something)
        try:
            while not (await asyncio.wait({task}, timeout=_LOOK))[0]:
                if self.lost:
                    raise BrowserFailedError
            return task.result()
        except Error as error:
            raise BrowserFailedError from error
        except FetchError:
            raise
        except Exception as error:
            if self.lost:  # when its driver dies, Playwright raises a plain Exception
                raise BrowserFailedError from error
            raise
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def watch_crashes(self) -> None:
        """Learn of every page's process that dies, from now on."""

        def crashed(_: object) -> None:
            for page in self._opening:
                page.cancel()

        session = await self.browser.new_browser_cdp_session()
        session.on("Target.targetCrashed", crashed)
        await session.send("Target.setDiscoverTargets", {"discover": True})

    async def open_page(self, context: BrowserContext) -> Page:
        """A new page; raises BrowserFailedError where a page's process dies meanwhile.

        Playwright leaves the call without an answer then: it speaks of a crash only once the page
        is open.
        """
        opening = asyncio.create_task(context.new_page())
        self._opening.add(opening)
        try:
            await asyncio.wait({opening})
            if opening.cancelled():
                raise BrowserFailedError
            return opening.result()
        finally:
            self._opening.discard(opening)
            opening.cancel()

    def processes(self) -> list[psutil.Process]:
        """Chromium's processes and the driver; empty once they ended."""
        processes = [self._driver] if self._driver is not None else []
        with contextlib.suppress(psutil.NoSuchProcess):
            processes += [self._main, *self._main.children(recursive=True)]
        return processes

    def measure(self) -> int:
        """Bytes that the processes have for themselves (resident less shared); blocks shortly."""
        total = 0
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                info = process.memory_info()
                total += info.rss - getattr(info, "shared", 0)
        self.memory = total
        return total

    def kill(self) -> None:
        """End Chromium at once, whatever its pages are doing; `end` is still to be called."""
        with contextlib.suppress(OSError):
            os.killpg(self._main.pid, signal.SIGKILL)
        for process in self.processes():
            if process is not self._driver:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    async def end(self) -> None:
        """Close it, kill what does not close, and wait until nothing of it is left."""
        family = await asyncio.to_thread(self.processes)
        if not self.lost and not await quietly(self.browser.close()):
            self.kill()
        if not await quietly(self._playwright.stop()) and self._driver is not None:
            with contextlib.suppress(psutil.Error):
                self._driver.kill()
        await asyncio.to_thread(end_all, family, CLOSING, tell=False)
        self._watchdog.release()
        for folder in self._folders:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def quietly(closing: Awaitable[object]) -> bool:
    """Close within the time limit; a browser that crashed has nothing left to close.

    Not with `asyncio.wait_for`, which may drop a cancellation (see SourceRunner._wait).
    """
    try:
        async with asyncio.timeout(CLOSING):
            await closing
    except Exception as error:  # noqa: BLE001  (Playwright's own failures have no common type)
        log.warning("Chromium did not close by itself: %s", type(error).__name__)
        return False
    return True


async def _launch(playwright: Playwright, executable: str | None, home: Path) -> ChromiumProcess:
    """Start it; what it writes beside its profile, as crash dumps, goes to `home`."""
    mark = _MARK + secrets.token_hex(8)
    browser = await playwright.chromium.launch(
        executable_path=executable,
        args=[*chromium_flags(), mark],
        env={**os.environ, "XDG_CONFIG_HOME": str(home)},
        ignore_default_args=list(NOT_WANTED),
        chromium_sandbox=sandboxed(),
        handle_sigint=False,
        timeout=_STARTING * 1000,
    )
    main = await asyncio.to_thread(_marked, mark)
    if main is None:
        raise OSError("the new Chromium is not among this process's children")
    chromium = ChromiumProcess(playwright, browser, main, home)
    await chromium.watch_crashes()
    return chromium


def _marked(mark: str) -> psutil.Process | None:
    """The main process of the Chromium that was started with `mark`."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if mark in words and not any(word.startswith("--type=") for word in words):
                return process
    return None


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
