"""Imported last by the fork server: the kernels of the usual model are loaded before it is forked.

It waits for whoever starts the nodes anyway. A node with another model loads its own. A process of
its own compiles what is not in the cache yet: a compiler holds 100 MB for as long as its process
lives, which here is as long as the node.
"""

import logging
import os

from embedding.exchange.config import ExchangeConfig
from embedding.models.config import ModelConfig
from embedding.worker.process.warming import warm, warm_exchange


def _load() -> None:
    warm(ModelConfig())
    warm_exchange(ExchangeConfig(), ModelConfig().width)


try:
    if (compiler := os.fork()) == 0:
        try:
            _load()
        finally:
            os._exit(0)
    os.waitpid(compiler, 0)
    _load()
except Exception:
    # The process that trains meets it again, and has somebody to tell.
    logging.getLogger(__name__).debug("the kernels could not be loaded", exc_info=True)
