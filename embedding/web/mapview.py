"""A word's map, as charts.js takes it and as the page says it in words."""

from __future__ import annotations

from dataclasses import dataclass

from embedding.trends.mapping import MapWindow, NeighbourMap
from embedding.web import formats
from embedding.web.plain import plain_map
from embedding.web.text import PageText


@dataclass(frozen=True)
class MapView:
    """data: windows with places, and `bounds` (least and greatest x, then y) that hold all."""

    data: dict[str, object]
    last: MapWindow
    nearest: tuple[tuple[str, float], ...]


def map_view(found: NeighbourMap, t: PageText) -> MapView:
    """The map of all windows, the last one shown first."""
    found = plain_map(found)
    places = [(p.x, p.y) for window in found.windows for p in window.places] or [(0.0, 0.0)]
    xs, ys = ([0.0, *(place[at] for place in places)] for at in (0, 1))
    bounds = [round(value, 3) for value in (min(xs), max(xs), min(ys), max(ys))]
    last = found.windows[-1]
    near = sorted((p for p in last.places if p.near), key=lambda p: -p.similarity)
    windows = []
    before: set[str] = set()
    for window in found.windows:
        here = {p.word for p in window.places if p.near}
        windows.append(
            {
                "label": t.window(window.label),
                "kept": f"{window.kept * 100:.0f} %",
                "places": [
                    {
                        "word": formats.short_word(p.word, 24),
                        "x": round(p.x, 3),
                        "y": round(p.y, 3),
                        "similarity": round(p.similarity, 2),
                        "near": p.near,
                        "new": bool(before) and p.near and p.word not in before,
                    }
                    for p in window.places
                ],
            }
        )
        before = here
    data: dict[str, object] = {
        "word": formats.short_word(found.word, 24),
        "title": t("map_title", word=formats.short_word(found.word, 40)),
        "bounds": bounds,
        "windows": windows,
    }
    return MapView(data, last, tuple((p.word, p.similarity) for p in near))
