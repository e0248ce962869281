"""Axes that `yeoron trends axis` follows: those of the settings, or one of two given poles."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from embedding.commands.common import console, print_line
from embedding.kernel.errors import InputError
from embedding.trends.axis import AxisCache, AxisHistory, axis_history
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots
from embedding.trends.plain import to_plain
from embedding.trends.table import as_json as to_json
from embedding.trends.table import axes_csv, axis_csv, axis_table
from embedding.web.config import AxisConfig


@dataclass(frozen=True)
class Axis:
    """What was asked for; `name` is None where both poles were given."""

    name: str | None
    positive: tuple[str, ...]
    negative: tuple[str, ...]


@dataclass(frozen=True)
class Followed:
    """A word along an axis, or the sentence why it cannot be followed there."""

    name: str | None
    history: AxisHistory | None
    sentence: str | None = None


def axes_asked(
    configured: Sequence[AxisConfig], name: str | None, positive: str | None, negative: str | None
) -> tuple[Axis, ...]:
    """The given poles, else the named axis of the settings, else all of them.

    Raises InputError for one pole without the other, poles beside a name, an unknown name, and
    settings without axes.
    """
    if positive is not None or negative is not None:
        return (_given(name, positive, negative),)
    axes = tuple(Axis(one.name, one.positive, one.negative) for one in configured)
    known = ", ".join(one.name for one in configured) or "none"
    if name is not None:
        axes = tuple(one for one in axes if one.name == name)
        if not axes:
            raise InputError(f"--axis {name[:40]}: the settings' axes (web.axes) are {known}.")
    if not axes:
        raise InputError("the settings have no axes (web.axes); give --positive and --negative.")
    return axes


def _given(name: str | None, positive: str | None, negative: str | None) -> Axis:
    if name is not None:
        raise InputError(
            f"--axis {name[:40]} beside poles: give an axis by its name, or --positive and "
            "--negative."
        )
    for option, side in (("--positive", positive), ("--negative", negative)):
        if side is None:
            raise InputError(
                f"{option} is missing: an axis needs both poles; without either, the axes of the "
                "settings answer."
            )
    one, other = (
        tuple(word.strip() for word in (side or "").split(",") if word.strip())
        for side in (positive, negative)
    )
    return Axis(None, one, other)


def follow(
    store: Snapshots,
    word: str,
    axes: Sequence[Axis],
    config: TrendsConfig,
    id: str,
) -> list[Followed]:
    """The word along each axis up to snapshot `id`.

    Raises InputError when no axis can be followed: none of a pole's words was used, or there are no
    sums of usage. Where another axis can, the sentence is kept in its place.
    """
    found: list[Followed] = []
    kept: AxisCache = {}
    failed: list[InputError] = []
    for one in axes:
        try:
            history = axis_history(
                store, word, one.positive, one.negative, config, id=id, kept=kept
            )
        except InputError as error:
            failed.append(error)
            found.append(Followed(one.name, None, str(error)))
        else:
            found.append(Followed(one.name, history))
    if failed and len(failed) == len(axes):
        named = "" if axes[0].name is None else f"axis {axes[0].name}, "
        sentence = str(failed[0])
        of_poles = sentence.startswith(("positive:", "negative:"))
        raise InputError(f"{named}{sentence}" if of_poles else sentence)
    return found


def print_axes(found: Sequence[Followed], *, as_json: bool, as_csv: bool) -> None:
    """To standard output. Axes of the settings are named in JSON (a list) and in CSV (a column)."""
    given = found[0].name is None and found[0].history is not None
    if as_json:
        plain = [{"axis": one.name, "error": one.sentence, **_plain(one)} for one in found]
        sys.stdout.write(to_json(found[0].history) if given else to_json(plain))
    elif as_csv:
        named = [(one.name or "", one.history) for one in found if one.history is not None]
        sys.stdout.write(axis_csv(named[0][1]) if given else axes_csv(named))
    else:
        for one in found:
            if one.history is not None:
                console.print(axis_table(one.history, one.name))
            else:
                print_line(f"{one.name}: {one.sentence}")


def _plain(one: Followed) -> dict[str, object]:
    plain: dict[str, object] = {} if one.history is None else to_plain(one.history)
    return plain
