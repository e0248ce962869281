"""gensim as a process of its own: count, train, save, and say how long each took.

python -m yeoron_bench.peers corpus.txt --out vectors.bin --workers 2
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from embedding.kernel.processes import peak_memory


def train_gensim(given: argparse.Namespace) -> dict[str, float]:
    """Seconds of each step, words trained (those in the vocabulary, all epochs), peak bytes."""
    from gensim.models import FastText, Word2Vec

    more = {"cbow": {"sg": 0}, "sgns": {"sg": 1}, "fasttext": {"sg": 1, "bucket": given.buckets}}
    model = (FastText if given.model == "fasttext" else Word2Vec)(
        vector_size=given.dim,
        window=given.context,
        negative=given.negative,
        sample=given.sample,
        min_count=given.min_count,
        alpha=given.learning_rate,
        min_alpha=1e-4,
        **more[given.model],
        workers=given.workers,
        seed=given.seed,
    )
    marks = [time.perf_counter()]
    model.build_vocab(corpus_file=given.corpus)
    marks.append(time.perf_counter())
    model.train(
        corpus_file=given.corpus,
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=given.epochs,
    )
    marks.append(time.perf_counter())
    model.wv.save_word2vec_format(given.out, binary=True)
    if given.contexts:
        np.save(given.contexts, model.syn1neg)
    marks.append(time.perf_counter())
    known = sum(int(model.wv.get_vecattr(word, "count")) for word in model.wv.index_to_key)
    vocabulary, train, save = (after - before for before, after in pairwise(marks))
    return {
        "tokens_trained": known * given.epochs,
        "vocabulary": len(model.wv),
        "vocabulary_seconds": vocabulary,
        "train_seconds": train,
        "save_seconds": save,
        "seconds": vocabulary + train + save,
        "words_per_second": known * given.epochs / train,
        "peak_memory": peak_memory(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("--out", required=True)
    parser.add_argument("--contexts", help="also save the context vectors (.npy), same rows")
    parser.add_argument("--model", required=True, choices=("sgns", "cbow", "fasttext"))
    parser.add_argument("--buckets", type=int, default=200_000, help="as Yeoron's")
    for name in ("dim", "context", "negative", "min-count", "epochs", "workers", "seed"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("sample", "learning-rate"):
        parser.add_argument(f"--{name}", type=float, required=True)
    print(json.dumps(train_gensim(parser.parse_args(arguments))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
