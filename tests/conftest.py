"""What all tests share: how hypothesis explores."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The machine may be busy: slow examples are no failure. A developer's run explores at random;
# continuous integration repeats the same examples, so that a change is judged by the change.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("developer", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")
