"""Imported first by the fork server to disable garbage collection while modules load.

`forking.adopt` enables it again in each forked process.
"""

import gc

gc.disable()
