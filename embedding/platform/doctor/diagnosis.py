"""What a check found, and how all checks are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from embedding.kernel.errors import YeoronError

Severity = Literal["ok", "warn", "wrong"]


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was tried.

    state    wrong: the platform, or a part that the settings ask for, would not work
    found    a sentence
    advice   what to do; empty where there is nothing to do
    check    name of the check; a check itself does not know it
    """

    state: Severity
    found: str
    advice: str = ""
    check: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def fine(sentence: str) -> Diagnosis:
    """All is well."""
    return Diagnosis("ok", sentence)


def warn(sentence: str, advice: str) -> Diagnosis:
    """It works, and an operator should know."""
    return Diagnosis("warn", sentence, advice)


def wrong(sentence: str, advice: str) -> Diagnosis:
    """It does not work."""
    return Diagnosis("wrong", sentence, advice)


HealthCheck = Callable[[], Iterable[Diagnosis]]


def diagnose(checks: Mapping[str, HealthCheck]) -> list[Diagnosis]:
    """Run every check; one that breaks is a diagnosis too, and ends none of the others."""
    diagnoses: list[Diagnosis] = []
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
        diagnoses += [replace(symptom, check=name) for symptom in symptoms]
    return diagnoses
