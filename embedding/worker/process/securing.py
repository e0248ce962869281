"""A node that has learnt its corpus ends once its pushes are safe from a crash of the server.

Until then it keeps those that are in no checkpoint and would send them again; after it nobody can.
"""

from __future__ import annotations

import logging
import threading
import time

from embedding.exchange.client import ParameterClient

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
ASK_SECONDS = 5.0
"""How often a checkpoint is asked for."""
PATIENCE_SECONDS = 300.0
"""How long a server that answers, but writes no checkpoint, is waited for."""


def secure(client: ParameterClient, stop: threading.Event) -> None:
    """Wait until all pushes of this node, also of its earlier processes, are in a checkpoint.

    Where the server keeps none they are as soon as they are applied. Others need not wait for this
    node meanwhile. Returns at once when `stop` is set.
    """
    _, last = client.log.held
    if stop.is_set() or client.durable() >= last:
        return
    client.idle()
    began = time.monotonic()
    asked = -ASK_SECONDS
    while not stop.wait(_LOOK_SECONDS) and client.durable() < last:
        waited = time.monotonic() - began
        if waited > PATIENCE_SECONDS:
            logger.warning("%s: its last pushes came into no checkpoint", client.node)
            return
        if waited - asked >= ASK_SECONDS:
            asked = waited
            client.checkpoint(wait=False)
