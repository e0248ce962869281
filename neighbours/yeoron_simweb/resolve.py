"""Which corpus is played: the one given, $YEORON_DATA, ../shared/data, or a generated one."""

from __future__ import annotations

import os
from pathlib import Path

from embedding.kernel.errors import InputError
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import PlaybackCorpus, read_corpus
from yeoron_simweb.generated import generate

PREFERRED = "petitions.jsonl.xz"
GENERATED = Path("generated")
"""Setting `corpus` to this plays the generated corpus whatever data there are."""

_VARIABLE = "YEORON_DATA"
_SHARED = Path("../shared/data")


def resolve_corpus(config: SimwebConfig) -> PlaybackCorpus:
    """Find and read the corpus.

    Raises InputError where a corpus that was asked for (by setting or by $YEORON_DATA) is
    missing or unreadable; ../shared/data is only used where it holds one.
    """
    if config.corpus == GENERATED and not GENERATED.exists():
        return generate(config)
    if config.corpus is not None:
        return read_corpus(_file(config.corpus, "corpus"), config)
    named = os.environ.get(_VARIABLE)
    if named:
        return read_corpus(_file(Path(named), f"${_VARIABLE}"), config)
    shared = find_corpus(_SHARED)
    return generate(config) if shared is None else read_corpus(shared, config)


def find_corpus(folder: Path) -> Path | None:
    """The corpus in a folder: petitions.jsonl.xz, else the first .jsonl.xz or .jsonl by name."""
    if not folder.is_dir():
        return None
    if (folder / PREFERRED).is_file():
        return folder / PREFERRED
    corpora = sorted(p for p in folder.iterdir() if p.name.endswith((".jsonl", ".jsonl.xz")))
    return corpora[0] if corpora else None


def _file(path: Path, setting: str) -> Path:
    path = path.expanduser()
    if not path.is_dir():
        return path
    corpus = find_corpus(path)
    if corpus is None:
        raise InputError(
            f"{setting}: {path} holds no corpus; a .jsonl or .jsonl.xz file, or a folder with "
            "one, is expected."
        )
    return corpus
