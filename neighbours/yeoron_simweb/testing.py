"""A simulated web for tests: a real uvicorn in a thread, on an ephemeral port."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from embedding.kernel.errors import PlatformError
from embedding.kernel.ports import address_of, listen_on
from yeoron_simweb.app import create_app
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import from_records
from yeoron_simweb.generated import generate
from yeoron_simweb.serve import server

AT_ONCE = 1e12
"""A `speed` at which every corpus is published within a millisecond."""

_PATIENCE = 120.0


@contextmanager
def running(
    config: SimwebConfig | None = None,
    documents: Sequence[Mapping[str, object]] | None = None,
) -> Iterator[str]:
    """Serve `documents` (keys of a corpus line, also `part`) and yield the base URL.

    Without a config everything is visible at once. `port` is always ephemeral; with a config the
    clock starts at once only if it says `autostart`. Without documents the generated corpus is
    played. The server is stopped at the end.
    """
    config = config or SimwebConfig(speed=AT_ONCE, autostart=True, crawl_delay=0)
    corpus = generate(config) if documents is None else from_records(documents, config)
    with listen_on(config.host, 0) as listener:
        web = server(create_app(config, corpus))
        thread = threading.Thread(
            target=web.run, kwargs={"sockets": [listener]}, name="simweb", daemon=True
        )
        thread.start()
        try:
            _wait_started(web, thread)
            yield f"http://{address_of(listener)}"
        finally:
            web.should_exit = True
            thread.join(_PATIENCE)
        if thread.is_alive():
            raise PlatformError(f"simweb: the server did not stop within {_PATIENCE:.0f} s.")


def _wait_started(web: object, thread: threading.Thread) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not getattr(web, "started", False):
        if not thread.is_alive() or time.monotonic() > deadline:
            raise PlatformError(f"simweb: the server did not start within {_PATIENCE:.0f} s.")
        time.sleep(0.005)
