"""What `make setup` shows while it installs."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

INFRA = Path(__file__).parents[2] / "infra"
PIP = """#!/bin/sh
case "$*" in
  *"pip install"*run.txt*) echo "Collecting apache-airflow==3.3.0 (from yeoron==0.1.0)"; sleep 3.5
    {end} ;;
esac
"""


def stub(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def run(tmp_path):
    """Runs the script in a folder of its own with a pip that ends as told."""

    def setup(end: str, fonts: str = "Noto") -> subprocess.CompletedProcess[str]:
        shutil.copytree(INFRA, tmp_path / "infra")
        stub(tmp_path / ".venv/bin/python", PIP.format(end=end))
        stub(tmp_path / "bin/chromium", "#!/bin/sh\n")
        stub(tmp_path / "bin/fc-list", f"#!/bin/sh\necho {fonts}\n")
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "infra/setup.sh"],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "SETUP_LINE_S": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return setup


def test_it_says_how_long_it_takes_and_what_pip_is_at(run) -> None:
    done = run("exit 0")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " s: " in line]
    assert any(line.endswith(" s: Collecting apache-airflow==3.3.0") for line in lines), lines


def test_where_the_installation_fails_it_says_why(run) -> None:
    failed = run("echo 'ERROR: no space left'; exit 1")
    assert failed.returncode == 1
    assert "ERROR: no space left" in failed.stderr
    assert "var/setup.log says more" in failed.stderr


def test_it_says_what_apt_get_and_sudo_are_called_for(run, tmp_path: Path) -> None:
    called = tmp_path / "called"
    stub(tmp_path / "bin/apt-get", f'#!/bin/sh\necho "$@" >>{called}\n')
    stub(tmp_path / "bin/sudo", '#!/bin/sh\nshift\nexec "$@"\n')
    stub(tmp_path / "bin/id", "#!/bin/sh\necho 1000\n")
    done = run("exit 0", fonts="")
    assert done.returncode == 0, done.stderr
    assert "install -y -qq --no-install-recommends fonts-noto-cjk" in called.read_text()
    assert (
        "Installing fonts-noto-cjk with sudo apt-get, which asks no password here: "
        "pictures of pages need a Korean font."
    ) in done.stdout.splitlines()
