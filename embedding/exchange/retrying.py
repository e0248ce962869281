"""How long a request is tried again while the server is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import tenacity

from embedding.exchange.config import ExchangeConfig
from embedding.kernel.errors import UnavailableError

T = TypeVar("T")

PARTING_S = 3.0
"""How long a process that was told to stop still tries."""


def patiently(
    call: Callable[[], T],
    *,
    config: ExchangeConfig,
    stop: threading.Event,
    drop: Callable[[], None],
    away: Callable[[BaseException | None], None],
) -> T:
    """Run `call` again, with back-off, for `connect_timeout_s`, and not much longer than `stop`.

    Nobody may be left of those who started a process that is told to stop: it must not wait for a
    server that went with them.

    drop  forgets the connection, before each further try
    away  hears why the first try failed
    """

    def reset(state: tenacity.RetryCallState) -> None:
        drop()
        if state.attempt_number == 1:
            away(state.outcome.exception() if state.outcome is not None else None)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(UnavailableError),
        wait=tenacity.wait_exponential_jitter(
            initial=config.backoff_s, max=config.max_backoff_s, jitter=config.backoff_s
        ),
        stop=tenacity.stop_any(tenacity.stop_after_delay(config.connect_timeout_s), _Parting(stop)),
        sleep=_pause(stop),
        before_sleep=reset,
        reraise=True,
    )(call)


class _Parting(tenacity.stop.stop_base):
    """Whether `stop` has been set for `PARTING_S` seconds, as far as was looked."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._since: float | None = None

    def __call__(self, state: tenacity.RetryCallState) -> bool:
        del state
        if not self._stop.is_set():
            return False
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return now - self._since >= PARTING_S


def _pause(stop: threading.Event) -> Callable[[float], Any]:
    def pause(seconds: float) -> None:
        if stop.is_set():
            time.sleep(min(seconds, PARTING_S / 4))
        else:
            stop.wait(seconds)

    return pause
