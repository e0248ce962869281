"""What all tests share: how hypothesis explores."""

from __future__ import annotations

import os

from hypothesis import settings

# The machine may be busy: a slow example is no failure. A developer's run explores at random;
# continuous integration repeats the same examples, so that a change is judged by the change.
settings.register_profile("developer", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")
