"""What a node must know to start: a JSON-safe description that travels through Dask."""

from __future__ import annotations

from pydantic import Field, model_validator

from embedding.config import Config
from embedding.crawl.config import CrawlConfig
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.topology import RingSpec, TopologyConfig
from embedding.models.config import ModelConfig
from embedding.models.config import Model, ModelConfig
