"""Korean documents as plain text of Kiwi morphemes, so that every trainer reads the same words.

    python -m benchmarks morphemes reviews.jsonl.xz petitions.jsonl.xz --out korean.txt

Kiwi is slow: with --seconds it stops in time, and the same call again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.worker.spec import CorpusShare
from yeoron_bench.datedlines import dated_lines
from yeoron_bench.results import ended


def documents(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        for line in dated_lines(CorpusShare(path=str(path))):
            yield line.text


def cut(paths: Sequence[Path], out: Path, seconds: float) -> bool:
    """Append sentences of morphemes to `out`; whether all documents are done."""
    mark = out.with_suffix(".done")
    done = int(mark.read_text()) if mark.exists() else 0
    deadline = time.monotonic() + seconds
    pipeline = TextPipeline(TextConfig(tokenizer="kiwi", mask=False, new_words=0))
    with out.open("a" if done else "w", encoding="utf-8") as file:
        for at, text in enumerate(documents(paths)):
            if at < done:
                continue
            if time.monotonic() > deadline:
                break
            file.writelines(" ".join(words) + "\n" for words in pipeline.words(text))
            done = at + 1
        else:
            print(f"all {done:,} documents are in {out}")
            mark.unlink(missing_ok=True)
            return True
    mark.write_text(str(done))
    print(f"{done:,} documents are in {out}; call again to go on")
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="+", help="dated JSONL, plain or .xz")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=480.0)
    given = parser.parse_args(arguments)
    return ended(lambda: cut(given.corpus, given.out, given.seconds))


if __name__ == "__main__":
    sys.exit(main())
