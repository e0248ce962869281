"""Between crawler and gradients: the bounded queue, the replay memory, the rate limiter."""

from embedding.stream.config import StreamConfig
from embedding.stream.faults import PeerLost, QueueClosed, QueueEmpty, QueueFull, StreamError
from embedding.stream.initial import InitialPriorities, of_sentences
from embedding.stream.prioritised import PrioritisedReplay
from embedding.stream.queue import BlockQueue
from embedding.stream.rate import TokenBucket
from embedding.stream.replay import ReplayMemory, UniformReplay, make_replay
from embedding.stream.samples import Sample

__all__ = [
    "BlockQueue",
    "InitialPriorities",
    "PeerLost",
    "PrioritisedReplay",
    "QueueClosed",
    "QueueEmpty",
    "QueueFull",
    "ReplayMemory",
    "Sample",
    "StreamConfig",
    "StreamError",
    "TokenBucket",
    "UniformReplay",
    "make_replay",
    "of_sentences",
]
