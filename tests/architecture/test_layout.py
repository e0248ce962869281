"""Tests are laid out as the house is: the tests of a package lie in a folder of its name."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
ELSEWHERE = {
    "training": "commands",  # `yeoron train` is its one way in
}
"""Room → folder of its tests, where they have another name."""
OTHERS = {
    "airflow": "plugins/embedding_airflow and dags",
    "architecture": "the tree itself",
    "bench": "neighbours/yeoron_bench",
    "benchmarks": "benchmarks",
    "demo": "neighbours/yeoron_demo",
    "docs": "docs",
    "infra": "infra",
    "lab": "neighbours/yeoron_lab",
    "public": "plugins/yeoron",
    "registry": "embedding/kernel/registry.py, with packages outside the tree",
    "simweb": "neighbours/yeoron_simweb",
    "stores": "stores of every kind that older versions wrote",
}
"""Folders of tests that are about no one package of `embedding`."""


def folders() -> list[str]:
    """Every folder with tests in it."""
    found = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    return sorted(str(one) for one in found if "packages" not in one.parts)


def test_every_folder_of_tests_is_that_of_a_package() -> None:
    unknown = [
        one
        for one in folders()
        if one not in OTHERS and not (ROOT / "embedding" / one / "__init__.py").is_file()
    ]
    assert unknown == []


def test_every_room_has_a_folder_of_tests() -> None:
    rooms = {path.parent.name for path in ROOT.glob("embedding/*/__init__.py")}
    assert sorted({ELSEWHERE.get(room, room) for room in rooms} - {*folders()}) == []


def test_the_tests_of_a_room_of_packages_lie_in_folders_of_their_names() -> None:
    """What is about several of them stays at its root, and is the smaller part."""
    for room in ("server", "worker"):
        inside = [*(TESTS / room).glob("*/test_*.py")]
        assert len(inside) > 4 * len([*(TESTS / room).glob("test_*.py")]), room
