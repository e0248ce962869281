"""No module imports itself by way of others, not even inside a function or for types alone."""

from __future__ import annotations

import grimp
import pytest

PACKAGES = ("embedding", "embedding_airflow", "yeoron_bench", "yeoron_demo", "yeoron_simweb")
REGISTRIES = {
    "embedding.exchange.compression.traits",
    "embedding.models.traits",
    "embedding.server.policies.traits",
    "embedding.sources.kinds",
    "embedding.text.tokenizers",
    "embedding.trends.estimators",
}
"""They name, for type checkers alone, what others register with them."""


def circles(imports: dict[str, set[str]]) -> list[frozenset[str]]:
    """Strongly connected components of more than one module (Kosaraju's algorithm)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(imports):
        stack = [(start, iter(sorted(imports[start])))]
        if start in seen:
            continue
        seen.add(start)
        while stack:
            module, left = stack[-1]
            other = next((each for each in left if each not in seen), None)
            if other is None:
                order.append(module)
                stack.pop()
            else:
                seen.add(other)
                stack.append((other, iter(sorted(imports[other]))))
    importers: dict[str, set[str]] = {module: set() for module in imports}
    for module, others in imports.items():
        for other in others:
            importers[other].add(module)
    found, taken = [], set()
    for start in reversed(order):
        component, reach = set(), [start]
        while reach:
            module = reach.pop()
            if module not in taken:
                taken.add(module)
                component.add(module)
                reach += importers[module]
        if len(component) > 1:
            found.append(frozenset(component))
    return found


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    graph = grimp.build_graph(*PACKAGES)
    at_runtime = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    return {
        module: (at_runtime if module in REGISTRIES else graph).find_modules_directly_imported_by(
            module
        )
        for module in graph.modules
    }


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [frozenset("bc")]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_no_module_imports_itself_by_way_of_others(imports: dict[str, set[str]]) -> None:
    assert [sorted(circle) for circle in circles(imports)] == []
