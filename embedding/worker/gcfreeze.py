"""Imported first by the fork server: what it imports is no garbage, so nobody shall look for any.

A process of its own collects again from `forking.adopt` on.
"""

import gc

gc.disable()
