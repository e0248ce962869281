"""What is kept from other users of the machine."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedding.kernel.errors import PlatformError
from embedding.kernel.private import ensure_secret, private_folder

LIMITED = (
    "import resource as r, sys; r.setrlimit(r.RLIMIT_CORE, (0, int(sys.argv[1]))); "
    "from embedding.kernel.private import leave_no_core; leave_no_core(); leave_no_core(); "
    "print(r.getrlimit(r.RLIMIT_CORE))"
)


@pytest.mark.parametrize(("before", "after"), [(-1, 1), (4096, 1), (1, 1), (0, 0)])
def test_no_core_is_left_and_no_limit_raised(before: int, after: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(before)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str((after, after))


def test_the_first_of_several_makes_a_secret_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secret"
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda at: ensure_secret(path, str(at) * 1000), range(8)))
    assert len(set(path.read_text())) == 1
    assert len(path.read_text()) == 1000
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_others_may_read_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(PlatformError, match="cannot be kept from other users"):
        private_folder(tmp_path / "file" / "home")
