"""Loaded into Dask's scheduler and workers: their pages answer to names of this machine only, and
close a connection that is silent.

A page of another site, open in a browser here, may have its name resolved to loopback; it would
read names of tasks and logs otherwise.
"""

from __future__ import annotations

from typing import Any

from tornado.routing import HostMatches, Rule
from tornado.web import RequestHandler

_ELSEWHERE = r"(?!(localhost|127\.0\.0\.1|\[?::1\]?)$).*"

REQUEST_S = 10.0
"""Seconds that a connection may take for a request; Tornado waits an hour otherwise."""


class ForeignName(RequestHandler):
    """Refuses whatever is asked."""

    def prepare(self) -> None:
        self.set_status(400)
        self.finish("Invalid host header")


def dask_setup(server: Any) -> None:
    """Called by Dask with its scheduler or worker as it starts."""
    server.http_application.default_router.rules.insert(
        0, Rule(HostMatches(_ELSEWHERE), ForeignName)
    )
    parameters = server.http_server.conn_params
    parameters.header_timeout = parameters.body_timeout = REQUEST_S
