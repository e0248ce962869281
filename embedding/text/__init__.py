"""Text preparation: normalise, mask personal data, tokenise, count."""

from embedding.text.config import TextConfig
from embedding.text.mask import Masked, mask
from embedding.text.normalise import normalise
from embedding.text.pipeline import TextPipeline
from embedding.text.statistics import VocabularyStatistics
from embedding.text.tokenizer import Tokenizer, make_tokenizer

__all__ = [
    "Masked",
    "TextConfig",
    "TextPipeline",
    "Tokenizer",
    "VocabularyStatistics",
    "make_tokenizer",
    "mask",
    "normalise",
]
