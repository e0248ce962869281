"""The simulated web as a service of the platform."""

from __future__ import annotations

import sys

from embedding.platform.services import Service
from embedding.settings import Settings


def simweb_service(settings: Settings, *arguments: str) -> Service:
    """`yeoron simweb` with these options, on the port `ports.simweb`."""
    port = settings.ports.simweb
    return Service(
        name="simweb",
        command=(
            *(sys.executable, "-m", "embedding.cli"),
            *("simweb", "--port", str(port), *arguments),
        ),
        ready=f"http://127.0.0.1:{port}/clock.json",
    )
