"""Imported last by the fork server: the kernels of the usual model are loaded before it is forked.

It waits for whoever starts the nodes anyway. A node with another model loads its own.
"""

import logging

from embedding.exchange.config import ExchangeConfig
from embedding.models.config import ModelConfig
from embedding.worker.process.warming import warm, warm_exchange

try:
    warm(ModelConfig())
    warm_exchange(ExchangeConfig(), ModelConfig().width)
except Exception:
    # The process that trains meets it again, and has somebody to tell.
    logging.getLogger(__name__).debug("the kernels could not be loaded", exc_info=True)
