"""Yeoron (여론) in Python: open a store of snapshots, and ask what changed.

    import yeoron

    store = yeoron.open("snapshots")
    store.stories()                      # what happened in the last window
    store.moved("2020-03").to_pandas()   # words whose meaning changed
    store.word("코로나")                  # one word through all windows

    store = yeoron.train("posts.jsonl", out="snapshots", dated="month", tokenizer="kiwi")

What this package exports keeps its names and meaning within a major version (semantic versioning);
modules of `embedding` may change. Reading needs the core alone; training needs `yeoron[train]`.
"""

from embedding import __version__
from embedding.kernel.errors import YeoronError
from yeoron.store import Store, open, train  # noqa: A004 - as in gzip.open
from yeoron.table import Table
from yeoron.word import Word

__all__ = ["Store", "Table", "Word", "YeoronError", "__version__", "open", "train"]
