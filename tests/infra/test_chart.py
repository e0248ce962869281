"""The Helm chart: Helm lints and renders it, and what it renders is what Kubernetes takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from embedding.cli import app
from embedding.settings import Settings

CHECKERS = "helm-python-sdk and kubernetes-validate are not installed (infra/locks/more.txt)"
CHART = Path(__file__).parents[2] / "infra" / "helm" / "yeoron"
KUBERNETES = "1.31"
DATABASE = {"url": "postgresql://yeoron@db.example.org:5432/yeoron", "passfileSecret": "database"}
SEVERAL = {"database": DATABASE, "nodes": {"replicas": 2}, "control": {"workers": 1}}
WRONG: dict[str, dict[str, Any]] = {
    "an unknown value": {"node": {"replicas": 2}},
    "a password in the address": {"database": {"url": "postgresql://yeoron:secret@db/yeoron"}},
    "a number of pods that is none": {"nodes": {"replicas": -1}},
    "a size that is none": {"control": {"storage": "much"}},
}


def values() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return loaded


def merged(given: dict[str, Any]) -> dict[str, Any]:
    """The chart's values with these in their place, two levels deep as all of them are."""
    base = values()
    for name, value in given.items():
        base[name] = {**base.get(name, {}), **value} if isinstance(value, dict) else value
    return base


def rendered(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that Helm makes of the chart; skips where Helm's library is not installed."""
    helm = pytest.importorskip("helm_python", reason=CHECKERS)
    with helm.Chart.load(str(CHART)) as chart:
        files = chart.render(given, name="opinion", namespace="press")
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def test_the_schema_takes_the_chart_s_values_and_no_wrong_ones() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    check = jsonschema.Draft7Validator(schema)
    check.validate(values())
    check.validate(merged(SEVERAL))
    for name, given in WRONG.items():
        assert not check.is_valid(merged(given)), name


def test_the_chart_sets_what_the_program_knows() -> None:
    templates = "".join(file.read_text() for file in (CHART / "templates").iterdir())
    for section, name in re.findall(r"YEORON_([A-Z]+)__([A-Z_]+)", templates):
        assert name.lower() in Settings.model_fields[section.lower()].annotation.model_fields, name  # type: ignore[union-attr]
    used = set(re.findall(r"\.Values\.(\w+)", templates))
    assert used == set(values())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = CliRunner().invoke(app, ["--version"]).stdout.strip()
    assert version == f"yeoron {chart['appVersion']}"


def test_helm_finds_nothing_wrong() -> None:
    helm = pytest.importorskip("helm_python", reason=CHECKERS)
    found = helm.lint(str(CHART))
    assert found["errors"] == []
    assert [one["error"] for one in found["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("given", [{}, {"database": DATABASE}, SEVERAL], ids=["one", "db", "nodes"])
def test_kubernetes_takes_every_object(given: dict[str, Any]) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason=CHECKERS).validate
    for one in rendered(given):
        validate(one, KUBERNETES, strict=True)


def test_every_container_is_as_strict_as_that_of_the_compose_file() -> None:
    sets = of_kind(rendered(SEVERAL), "StatefulSet")
    assert set(sets) == {"opinion-control", "opinion-node"}
    for one in sets.values():
        pod = one["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["terminationGracePeriodSeconds"] >= 120
        for container in (*pod["initContainers"], *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_nodes_of_other_pods_find_the_control_pod_by_its_name() -> None:
    objects = rendered(SEVERAL)
    sets = of_kind(objects, "StatefulSet")
    control = sets["opinion-control"]["spec"]
    env = {one["name"]: one["value"] for one in _container(control)["env"]}
    assert control["replicas"] == 1
    assert control["serviceName"] in of_kind(objects, "Service")
    assert env["YEORON_HOSTS__ADDRESS"] == "opinion-control-0.opinion.press.svc"
    assert (env["YEORON_CLUSTER__NODES"], env["YEORON_HOSTS__WORKERS"]) == ("3", "1")
    node = {one["name"]: one["value"] for one in _container(sets["opinion-node"]["spec"])["env"]}
    assert "YEORON_HOSTS__ADDRESS" not in node


def test_nodes_without_a_shared_database_are_refused() -> None:
    with pytest.raises(Exception, match=r"set database\.url"):
        rendered({"nodes": {"replicas": 1}})


def test_one_pod_needs_neither_database_nor_joining() -> None:
    sets = of_kind(rendered({}), "StatefulSet")
    assert set(sets) == {"opinion-control"}
    env = {one["name"] for one in _container(sets["opinion-control"]["spec"])["env"]}
    assert not {one for one in env if "DATABASE" in one or "HOSTS" in one}


def _container(spec: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = spec["template"]["spec"]["containers"][0]
    return container
