"""Which window of event time a DAG run is about, from its params and its logical date."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from embedding.kernel.records import Window

LABEL = r"^\d{4}-(0[1-9]|1[0-2])(-\d{2}(T\d{2})?)?$"
"""A month, a day (or, with unit `week`, the week that holds it), or an hour."""

_FORMS = {"month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}


def run_window(params: Mapping[str, Any], when: datetime, calendar: str) -> Window:
    """The window of a run: a pure function, so every task of the run gets the same one.

    In this order: `window_start` and `window_end` (ISO; by the server's clock when they name no
    zone), the label `window` (`2020-02`, `2020-02-03`, `2020-02-03T04`), else the last window that
    had ended at `when`. A param `unit` other than `auto` goes before that of the server.

    calendar  what the server counts in (`ServerConfig.calendar`), as text

    Raises ConfigError for what is no window.
    """
    from embedding.kernel.records import Calendar, Window, WindowUnit

    start, end, label = (params.get(k) for k in ("window_start", "window_end", "window"))
    named = params.get("unit") or "auto"
    own = Calendar.of(calendar)
    zone = own.zone
    if bool(start) != bool(end):
        raise ConfigError("params window_start and window_end: give both or none of them.")
    if start and end:
        return Window(_moment(start, "window_start", zone), _moment(end, "window_end", zone))
    if label:
        return _labelled(str(label), None if named == "auto" else str(named), zone)
    chosen = own if named == "auto" else Calendar(WindowUnit(named), zone)
    return chosen.window(chosen.start(when.timestamp()) - 1)


def _labelled(label: str, unit: str | None, zone: tzinfo) -> Window:
    """The window that `label` names; a day stands for its week when `unit` is `week`."""
    from embedding.kernel.records import Window, WindowUnit

    forms = {7: "month", 10: "day", 13: "hour"}
    form = forms.get(len(label)) if re.match(LABEL, label) else None
    try:
        when = datetime.strptime(label, _FORMS[form or "month"]).replace(tzinfo=zone)
    except ValueError:
        form = None
    if form is None or (unit not in (None, form) and (unit, form) != ("week", "day")):
        raise ConfigError(
            f"param window {label!r}{f' with unit {unit}' if unit else ''}: "
            "2020-02 (month), 2020-02-03 (day, or the week that holds it with unit week) or "
            "2020-02-03T04 (hour) is accepted."
        )
    return Window.holding(when, WindowUnit(unit or form))


def _moment(value: str, name: str, zone: tzinfo) -> datetime:
    try:
        when = datetime.fromisoformat(value)
    except ValueError as error:
        raise ConfigError(f"param {name} {value!r}: an ISO date and time is accepted.") from error
    return when.replace(tzinfo=zone) if when.tzinfo is None else when.astimezone(zone)
