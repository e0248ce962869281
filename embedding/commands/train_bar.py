"""The progress bar of `yeoron train`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.text import Text

from embedding.commands.common import errors

if TYPE_CHECKING:
    from embedding.training import TrainProgress


class _TimeLeft(ProgressColumn):
    """Time left, from the share done since the first tokens were learnt."""

    def render(self, task: Task) -> Text:
        if task.total is None or not task.completed or task.fields["began"] is None:
            return Text("", style="progress.remaining")
        done = task.completed - task.fields["from_share"]
        if done <= 0:
            return Text("", style="progress.remaining")
        passed = task.get_time() - task.fields["began"]
        left = timedelta(seconds=int(passed * (task.total - task.completed) / done))
        return Text(f"{left} left", style="progress.remaining")


class TrainBar:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, *, kept: bool) -> None:
        start = "Starting" if kept else "Starting (no --out: nothing will be kept)"
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            _TimeLeft(),
            console=errors,
            disable=not errors.is_terminal,
            transient=True,
        )
        self._task = self.progress.add_task(start, total=None, began=None, from_share=0.0)

    def __enter__(self) -> TrainBar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, at: TrainProgress) -> None:
        """Show how far the training is."""
        if not at.tokens:
            return
        loss = "" if at.loss is None else f", loss {at.loss:.3f}"
        again = f", {at.replayed:,} learnt again" if at.replayed else ""
        text = f"{at.words_per_second:,.0f} words/s{again}{loss}"
        self.progress.update(self._task, description=text)
        if at.share is None:
            return
        self.progress.update(self._task, total=1.0, completed=at.share)
        task = self.progress.tasks[0]
        if task.fields["began"] is None:
            self.progress.update(self._task, began=task.get_time(), from_share=at.share)
