"""A node without its crawler: documents go through its text room, learner and connection."""

from __future__ import annotations

from datetime import UTC, datetime

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Welcome
from embedding.kernel.records import Calendar, Document, TokenBlock
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.service import ParameterServer
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.words.contributing import ContributorCollector
from embedding.worker.words.lexicon import NodeLexicon

MODEL = ModelConfig(dim=4, sample=0.0)
NODE = NodeConfig(replay_ratio=0.0)
TEXT = TextConfig(tokenizer="whitespace")
WHEN = datetime(2020, 2, 3, tzinfo=UTC)


class Node:
    """A node's text pipeline and learner on a connection of its own."""

    def __init__(
        self, server: ParameterServer, name: str, *, crawls: bool = True, text: TextConfig = TEXT
    ) -> None:
        self.client = ParameterClient(server.location, node=name, config=ExchangeConfig())
        welcome = self.client.hello()
        self.pipeline = TextPipeline(text)
        self.learner = Learner(
            self.client,
            make_trainer(MODEL),
            None,
            LearnerSetup(name, MODEL, NODE, Calendar.of(welcome.window_unit)),
            welcome=Welcome(welcome.clock, welcome.sequence, min_count=welcome.min_count),
            lexicon=NodeLexicon(
                listener=ContributorCollector.of(welcome, text.unknown_authors) if crawls else None
            ),
        )
        self._url = 0

    def read(
        self, source: str, *texts: tuple[str | None, str], when: datetime = WHEN
    ) -> TokenBlock:
        """Learn documents given as (author, text)."""
        documents = []
        for author, text in texts:
            self._url += 1
            url = f"https://{source}.example/{self._url}"
            documents.append(Document(url, source, text, when, when, author=author))
        block = self.pipeline.block(documents, [0.0] * len(documents))
        self.learner.learn([TokenBlock.from_buffer(block.to_buffer())])
        return block
