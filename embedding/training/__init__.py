"""Training on a corpus file through the same node, exchange and server code as the stream."""

from embedding.training.engine import train_corpus
from embedding.training.request import TrainProgress, TrainRequest, TrainResult

__all__ = ["TrainProgress", "TrainRequest", "TrainResult", "train_corpus"]
