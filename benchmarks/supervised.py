"""The platform's own services under supervisord, in a folder that goes afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from embedding.kernel.certificates import ensure_certificate
from embedding.platform.operate import with_common
from embedding.platform.services import Service
from embedding.platform.supervisor import Supervisor
from embedding.settings import SETTINGS_VARIABLE, Settings, load_settings


@contextmanager
def new_home(bench: str) -> Iterator[Path]:
    """A folder for all state of a run."""
    name = f"yeoron-{bench}-"
    with tempfile.TemporaryDirectory(prefix=name, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def supervised(
    file: Path, services: Callable[[Settings], Sequence[Service]]
) -> Iterator[tuple[Settings, Supervisor]]:
    """The services that are started with the settings of a file; all of them end afterwards.

    file      a settings file; this process and those it starts read it meanwhile
    services  which are wanted with its settings
    """
    before = os.environ.get(SETTINGS_VARIABLE)
    os.environ[SETTINGS_VARIABLE] = str(file)
    try:
        settings = load_settings()
        ensure_certificate(settings.paths.secrets, "dask")
        supervisor = Supervisor(settings.paths.home, settings.paths.logs)
        wanted = with_common(settings, services(settings))
        supervisor.write(wanted)
        try:
            supervisor.start()
            supervisor.wait_ready(wanted)
            yield settings, supervisor
        finally:
            supervisor.stop()
    finally:
        if before is None:
            del os.environ[SETTINGS_VARIABLE]
        else:
            os.environ[SETTINGS_VARIABLE] = before
