"""Imported first by the fork server: what it imports is no garbage, so nobody shall look for any.

A process of its own collects again from `forking.adopt` on.

Arrow imports pandas, where there is one, when it is first given a list. That takes a part of a
second and 40 MB in each process of a node, and none of them needs it.
"""

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

gc.disable()


class _WithoutPandas:
    """Finds no pandas."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used in the processes of a node", name=name)
        return None


sys.meta_path.insert(0, _WithoutPandas)
