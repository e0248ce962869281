"""Imported first by the fork server: what it imports is no garbage, so nobody shall look for any.

A process of its own collects again from `forking.adopt` on.

Arrow imports pandas, where there is one, when it is first given a list. That takes a part of a
second and 40 MB in each process of a node, and none of them needs it.
"""

import gc
import sys
from typing import Any

gc.disable()
_modules: dict[str, Any] = sys.modules
_modules.setdefault("pandas", None)
