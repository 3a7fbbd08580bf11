"""Progress bars on a terminal, the durations of phases, and peak memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text


@dataclass
class Bar:
    """The progress bar of one phase; without a display it shows nothing."""

    display: RichProgress | None = None
    task: TaskID | None = None

    def advance(self, amount: int, **figures: float) -> None:
        """Advance by a number of documents, and show figures such as the loss."""
        if self.display is not None and self.task is not None:
            shown = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
            self.display.update(self.task, advance=amount, figures=shown)


class _Speed(ProgressColumn):
    """Items per second; empty until it is known."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


class Progress:
    """Shows the progress of training on standard error.

    Parameters
    ----------
    show
        Whether to show anything; None shows it on a terminal only.

    Examples
    --------
    >>> with Progress(show=False).phase("counting", 3) as bar:
    ...     bar.advance(3, loss=0.5)
    """

    def __init__(self, show: bool | None = None) -> None:
        self._console = Console(stderr=True, emoji=False)
        self._show = self._console.is_terminal if show is None else show

    @contextmanager
    def phase(self, name: str, total: int) -> Iterator[Bar]:
        """Show a bar with documents per second, elapsed time and remaining time during a phase."""
        if not self._show:
            yield Bar()
            return
        columns = (
            "{task.description}",
            BarColumn(bar_width=16),
            "{task.percentage:>3.0f} %",
            _Speed(),
            TimeElapsedColumn(),
            "left",
            TimeRemainingColumn(),
            "{task.fields[figures]}",
        )
        with RichProgress(*columns, console=self._console) as display:
            yield Bar(display, display.add_task(name, total=total, figures=""))

    def say(self, line: str) -> None:
        """Show a line."""
        if self._show:
            self._console.print(line, highlight=False)


@dataclass
class History:
    """A log with one entry per phase."""

    entries: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Record the duration of a phase and the peak memory.

        >>> history = History()
        >>> with history.phase("counting"):
        ...     pass
        >>> history.entries[0]["phase"]
        'counting'
        """
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.entries.append({"refresh": 0, "phase": name, "seconds": seconds, **peak_memory()})


def peak_memory() -> dict[str, float]:
    """Return the peak memory of this process in MB; an empty dictionary if the system does not report it.

    >>> peak_memory().get("peak_mb", 1.0) > 0
    True
    """
    try:
        # On Linux, `resource` includes the memory of the parent at the time of the fork.
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return {"peak_mb": next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6}
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return {}
    # Linux counts in kilobytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6}
