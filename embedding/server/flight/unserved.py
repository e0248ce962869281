"""A Flight server that says so of the calls it does not have, without Python's own words."""

from __future__ import annotations

from typing import Any

import pyarrow.flight as flight


class ClosedService(flight.FlightServerBase):  # type: ignore[misc]
    """Refuses what a parameter server has no use for: getting, putting and listing of flights."""

    def do_get(self, *call: Any) -> Any:
        """Refuse."""
        _refuse(call)

    def do_put(self, *call: Any) -> None:
        """Refuse."""
        _refuse(call)

    def list_flights(self, *call: Any) -> Any:
        """Refuse."""
        _refuse(call)

    def get_flight_info(self, *call: Any) -> Any:
        """Refuse."""
        _refuse(call)

    def get_schema(self, *call: Any) -> Any:
        """Refuse."""
        _refuse(call)


def _refuse(call: tuple[Any, ...]) -> None:
    del call
    raise flight.FlightServerError("only do_exchange and do_action are served here")
