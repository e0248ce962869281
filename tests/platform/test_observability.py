"""What operators import: dashboards and alerts ask for metrics and labels that there are."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from prometheus_client import ProcessCollector

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "infra" / "observability"
RULES = FOLDER / "alerts.yml"
OF_PROMETHEUS = {"up": {"job", "instance"}}
EVERYWHERE = {"job", "instance"}
KEYWORDS = {"and", "or", "unless", "by", "on", "without", "ignoring", "bool", "offset"}
OF_COUNTERS = re.compile(r"\b(?:rate|irate|increase)\(\s*([a-z_:][a-z0-9_:]*)")
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def loaded(name: str) -> ModuleType:
    """A script of `infra`; it imports others that lie beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "infra")
        return importlib.import_module(name)


@cache
def labels() -> dict[str, set[str]]:
    """Labels of every sample that a server can show."""
    process = ProcessCollector(registry=None).collect()
    found = OF_PROMETHEUS | {each.samples[0].name: EVERYWHERE for each in process}
    for name, kind, own, _ in loaded("reference").metric_families():
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        for suffix in suffixes:
            more = {"le"} if suffix == "_bucket" else set()
            found[name + suffix] = {*own, *more} | EVERYWHERE
    return found


def asked(expression: str) -> tuple[set[str], set[str]]:
    """Metrics and labels that an expression names."""
    text = re.sub(r'"[^"]*"', '""', expression)
    named: set[str] = set()
    for inner in re.findall(r"\{([^}]*)\}", text):
        named |= {part.partition("=")[0].strip(" !~") for part in inner.split(",")}
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", text)
    for inner in re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", text):
        named |= {part.strip() for part in inner.split(",") if part.strip()}
    text = re.sub(r"\b(?:by|on|without|ignoring)\s*\([^)]*\)", " ", text)
    text = re.sub(r"[a-z_]+\s*\(", "(", text)
    return set(NAME.findall(text)) - KEYWORDS, named


def dashboards() -> list[Path]:
    return sorted((FOLDER / "dashboards").glob("*.json"))


def alerts() -> list[dict[str, Any]]:
    found = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in found["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str, str]]:
    """Where, the expression, and what is shown beside it, which may name labels."""
    for path in dashboards():
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel["targets"]:
                shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
                yield f"{path.stem}: {panel['title']}", target["expr"], " ".join(shown)
    for rule in alerts():
        text = " ".join(rule["annotations"].values())
        shown = re.findall(r"\$labels\.(\w+)", text)
        yield rule["alert"], rule["expr"], " ".join(shown)


@pytest.mark.parametrize(("where", "expression", "shown"), list(expressions()))
def test_an_expression_names_metrics_and_labels_that_there_are(
    where: str, expression: str, shown: str
) -> None:
    metrics, named = asked(expression)
    assert metrics, where
    assert metrics <= set(labels()), f"{where}: {metrics - set(labels())}"
    there = set().union(*(labels()[each] for each in metrics))
    assert named | set(shown.split()) <= there, where


@pytest.mark.parametrize(("where", "expression", "shown"), list(expressions()))
def test_rates_are_taken_of_counters(where: str, expression: str, shown: str) -> None:
    for name in OF_COUNTERS.findall(expression):
        assert name.endswith(("_total", "_bucket", "_sum", "_count")), where


def test_the_parser_of_expressions_finds_an_unknown_metric_and_label() -> None:
    text = 'sum by (node) (rate(a_total{kind="x}y",z!=""}[5m])) / on (q) b > 0 and c'
    assert asked(text) == ({"a_total", "b", "c"}, {"node", "kind", "z", "q"})


def test_an_alert_says_what_is_wrong_and_what_to_do() -> None:
    assert len(alerts()) > 10
    for rule in alerts():
        for name in ("summary", "action"):
            sentence = rule["annotations"][name]
            assert sentence.endswith("."), (rule["alert"], name)
            assert len(sentence.split()) >= 3, (rule["alert"], name)
        assert rule["labels"]["severity"] in {"page", "warn"}
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names))


def test_commands_and_settings_that_alerts_name_are_there() -> None:
    commands = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    settings = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    text = " ".join(rule["annotations"]["action"] for rule in alerts())
    for command in re.findall(r"`(yeoron [a-z]+(?: [a-z]+)?)", text):
        assert f" {command}\n" in commands or f" {command.rsplit(' ', 1)[0]}\n" in commands, command
    for section, name in re.findall(r"`([a-z_]+)\.([a-z_]+)`", text):
        assert f"[{section}]" in settings, section
        assert f"`{name}`" in settings, name


def test_dashboards_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "infra/dashboards.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"run `python infra/dashboards.py`: {done.stdout}{done.stderr}"
    assert [path.stem for path in dashboards()] == ["crawl", "platform", "server", "training"]


def test_prometheus_accepts_the_rules_and_the_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (it comes with Prometheus)")
    for check in (
        ("check", "rules", str(RULES)),
        ("check", "config", str(FOLDER / "prometheus.yml")),
    ):
        done = subprocess.run(
            [promtool, *check], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
