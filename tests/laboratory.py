"""Whether the laboratory is as it was when its long tests last passed.

Tests marked `laboratory` are long ones of mechanisms in neighbours/yeoron_lab: deaths of groups and
their shards, whole trainings. `make test-all` runs them always, `make test` where the laboratory or
its tests have changed since they passed, which tests/lab/passed.txt says. A shallow clone knows no
older tree to compare with.

python tests/laboratory.py           exit code 0: nothing has changed
python tests/laboratory.py --passed  write down that they have passed
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / "tests" / "lab" / "passed.txt"
PLACES = (
    "neighbours/yeoron_lab/**/*.py",
    "tests/lab/*.py",
    "tests/commands/test_topologies.py",
    "tests/commands/test_train_changes.py",
    "tests/commands/test_train_closed.py",
    "tests/commands/test_train_columns.py",
    "tests/commands/test_train_groups.py",
    "tests/commands/test_train_models.py",
    "tests/commands/test_train_rehearsal.py",
    "tests/commands/test_train_shards.py",
    "tests/worker/process/test_chaos_groups.py",
    "tests/worker/process/test_chaos_shards.py",
    "tests/worker/process/test_chaos_windows.py",
)
"""The laboratory, and every file with a test of that mark."""


def digest() -> str:
    """SHA-256 (hex) of the names and contents of all these files."""
    found = hashlib.sha256()
    for path in sorted(path for place in PLACES for path in ROOT.glob(place)):
        content = path.read_bytes()
        found.update(f"{path.relative_to(ROOT)}:{len(content)}:".encode() + content)
    return found.hexdigest()


def unchanged() -> bool:
    """Whether all these files are as they were when the long tests passed."""
    return PASSED.read_text(encoding="utf-8").strip() == digest()


if __name__ == "__main__":
    if sys.argv[1:] == ["--passed"]:
        PASSED.write_text(f"{digest()}\n", encoding="utf-8")
    else:
        sys.exit(not unchanged())
