"""What a check found, and how all checks are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from embedding.kernel.errors import YeoronError

Severity = Literal["ok", "warn", "wrong"]


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was tried.

    state    wrong: the platform, or a part that the settings ask for, would not work
    found    a sentence
    advice   what to do; empty where nothing is to be done
    """

    check: str
    state: Severity
    found: str
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Symptom:
    """A diagnosis by a check that does not know its own name."""

    state: Severity
    found: str
    advice: str = ""


def fine(found: str) -> Symptom:
    """All is well."""
    return Symptom("ok", found)


def warn(found: str, advice: str) -> Symptom:
    """It works, and an operator should know."""
    return Symptom("warn", found, advice)


def wrong(found: str, advice: str) -> Symptom:
    """It does not work."""
    return Symptom("wrong", found, advice)


HealthCheck = Callable[[], Iterable[Symptom]]


def diagnose(checks: Mapping[str, HealthCheck]) -> list[Diagnosis]:
    """Run every check; one that breaks is a diagnosis too, and ends none of the others."""
    found: list[Diagnosis] = []
    for name, check in checks.items():
        try:
            symptoms = list(check())
        except YeoronError as error:
            symptoms = [wrong(str(error), "Do as the sentence says.")]
        except Exception as error:  # noqa: BLE001 - what is broken is what is looked for
            sentence = " ".join(str(error).split())[:200]
            symptoms = [
                wrong(f"It could not be tried: {type(error).__name__}: {sentence}", "Report this.")
            ]
        found += [Diagnosis(name, one.state, one.found, one.advice) for one in symptoms]
    return found
