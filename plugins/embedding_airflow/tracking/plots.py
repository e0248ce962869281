"""The pictures that go with a snapshot's run; drawn without a display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embedding.evaluation.evaluate import SnapshotEvaluation
from embedding.evaluation.losses import source_losses
from embedding.snapshots.format import Manifest

_HANGUL_FONTS = (
    "Nanum Gothic",
    "NanumGothic",
    "Noto Sans KR",
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "Baekmuk Gulim",
    "UnDotum",
)


def draw(folder: Path, series: Sequence[Manifest], evaluation: SnapshotEvaluation) -> list[Path]:
    """Write PNG files into `folder` and return their paths.

    series  manifests of one snapshot a window up to the judged one, oldest first

    `nll_by_source.png` is left out when no snapshot has such a figure, and
    `norm_frequency.png` when there is no word.
    """
    import matplotlib as mpl

    font = _hangul_font()
    settings = {"font.family": [font, "DejaVu Sans"] if font else ["DejaVu Sans"]}
    with mpl.rc_context({**settings, "axes.unicode_minus": False}):
        figure, axes = _axes("Vocabulary by window", "words")
        _windows(axes, series, [float(manifest.words) for manifest in series], "words")
        paths = [_save(figure, folder / "vocabulary.png")]
        if any(source_losses(manifest.quality) for manifest in series):
            paths.append(_likelihood(folder, series, hangul=font is not None))
        if len(evaluation.tables["norm"]):
            paths.append(_norms(folder, evaluation))
    return paths


def _hangul_font() -> str | None:
    from matplotlib import font_manager

    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return next((name for name in _HANGUL_FONTS if name in installed), None)


def _axes(title: str, ylabel: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.set_ylabel(ylabel)
    axes.grid(visible=True, alpha=0.3)
    return figure, axes


def _save(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path


def _likelihood(folder: Path, series: Sequence[Manifest], *, hangul: bool) -> Path:
    figure, axes = _axes("Loss of documents before they are learnt", "nats a pair")
    sources = sorted({source for manifest in series for source in source_losses(manifest.quality)})
    for number, source in enumerate(sources, start=1):
        values = [source_losses(manifest.quality).get(source, float("nan")) for manifest in series]
        label = source if hangul or source.isascii() else f"source {number}"
        _windows(axes, series, values, label)
    axes.legend(loc="best", fontsize="small")
    return _save(figure, folder / "nll_by_source.png")


def _windows(axes: Any, series: Sequence[Manifest], values: list[float], label: str) -> None:
    axes.plot(range(len(series)), values, marker="o", label=label)
    step = max(1, len(series) // 12)
    ticks = range(0, len(series), step)
    labels = [series[at].window.label for at in ticks]
    axes.set_xticks(list(ticks), labels, rotation=30, ha="right", fontsize="small")


def _norms(folder: Path, evaluation: SnapshotEvaluation) -> Path:
    figure, axes = _axes("Vector norm by frequency", "norm")
    frequency = evaluation.tables["frequency"].clip(min=1)
    axes.scatter(frequency, evaluation.tables["norm"], s=6, alpha=0.4)
    axes.set_xscale("log")
    axes.set_xlabel("running count")
    return _save(figure, folder / "norm_frequency.png")
