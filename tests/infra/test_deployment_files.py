"""The files in infra/ with which the platform is deployed say what the program accepts."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from embedding.cli import app
from embedding.settings import Settings

INFRA = Path(__file__).parents[2] / "infra"
UNITS = sorted(path.name for path in (INFRA / "systemd").iterdir())


def options() -> set[str]:
    up = get_command(app).commands["up"]
    return {option for parameter in up.params for option in parameter.opts}


def test_the_compose_file_keeps_to_the_rules() -> None:
    compose = yaml.safe_load((INFRA / "compose.yaml").read_text())
    platform = compose["services"]["platform"]
    assert platform["command"][0] == "up"
    assert set(platform["command"][1:]) <= options()
    sections = {
        name.split("__")[0].removeprefix("YEORON_").lower() for name in platform["environment"]
    }
    assert sections - {"database"} <= set(Settings.model_fields)
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert "healthcheck" in service, name
        assert "no-new-privileges:true" in service["security_opt"], name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{name} {port}"
        assert set(service["secrets"]) <= set(compose["secrets"])
    assert "PASSWORD:" not in (INFRA / "compose.yaml").read_text().replace(":PASSWORD)", "")


def test_the_image_runs_as_nobody_special_and_without_a_compiler() -> None:
    build, end = re.split(r"(?m)^FROM ", (INFRA / "Containerfile").read_text())[1:]
    assert "gcc" in build
    assert "gcc" not in end
    assert re.search(r"(?m)^USER 10001:10001$", end)
    assert end.index("USER") > end.index("RUN")
    assert "HEALTHCHECK" in end


def test_no_secret_beside_the_compose_file_gets_into_an_image_or_a_commit() -> None:
    compose = yaml.safe_load((INFRA / "compose.yaml").read_text())
    for secret in compose["secrets"].values():
        assert secret["file"].startswith("./secrets/")
    ignored = (INFRA.parent / ".containerignore").read_text().splitlines()
    assert ignored.index("infra/secrets") > ignored.index("!infra")
    assert "infra/secrets/" in (INFRA.parent / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_starts_the_program_and_gives_it_time_to_end(name: str) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(INFRA / "systemd" / name)
    service = unit["Service"]
    program, *arguments = service["ExecStart"].split()
    assert program.endswith("/yeoron")
    assert arguments[0] == "up"
    assert set(arguments[1:]) <= options()
    assert service["User"] == "yeoron"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    # systemd signals this process alone first: it ends the others in order.
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= 60


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_unit(name: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (INFRA / "systemd" / name).read_text()
    unit = tmp_path / name
    # The program and its user are not on this machine.
    unit.write_text(
        re.sub(r"(?m)^(User|Group)=.*\n", "", re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text))
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = [line for line in done.stderr.splitlines() if name in line]
    assert said == []
