"""Progress bars on a terminal, plain lines elsewhere, the durations of phases, and peak memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

# Seconds between two lines about one phase.
_BETWEEN_LINES = 30.0


class Bar(Protocol):
    """What shows the progress of one phase."""

    def advance(self, amount: int, **figures: float) -> None:
        """Advance by a number of documents, and show figures such as the loss."""


class _NoBar:
    """Shows nothing."""

    def advance(self, amount: int, **figures: float) -> None:
        """Do nothing."""


@dataclass
class _TerminalBar:
    """A progress bar on a terminal."""

    display: RichProgress
    task: TaskID

    def advance(self, amount: int, **figures: float) -> None:
        """Advance the bar."""
        self.display.update(self.task, advance=amount, figures=_shown(figures))


@dataclass
class _Lines:
    """Plain lines about one phase, for logs: while it lasts, one every half minute."""

    say: Callable[[str], None]
    clock: Callable[[], float]
    name: str
    total: int
    done: int = 0
    figures: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start = self.last = self.clock()

    def advance(self, amount: int, **figures: float) -> None:
        """Print a line if the last one was long ago."""
        self.done += amount
        self.figures = figures
        now = self.clock()
        if now - self.last >= _BETWEEN_LINES and self.done < self.total:
            share, seconds = self.done / self.total, now - self.start
            left = f", {seconds / share - seconds:,.0f} s left" if share else ""
            self.say(f"{self.name}: {100 * share:.0f}% in {seconds:,.0f} s{left}  {_shown(figures)}".rstrip())
            self.last = now

    def end(self) -> None:
        """Print that the phase is done."""
        seconds = self.clock() - self.start
        self.say(f"{self.name}: done in {seconds:,.1f} s  {_shown(self.figures)}".rstrip())


def _shown(figures: dict[str, float]) -> str:
    """Return figures as text; large numbers in full.

    >>> _shown({"loss": 0.12345, "words": 6553})
    'loss 0.123  words 6,553'
    """
    return "  ".join(f"{name} {value:{',.0f' if abs(value) >= 1000 else '.3g'}}" for name, value in figures.items())


class _Speed(ProgressColumn):
    """Items per second; empty until it is known."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


class Progress:
    """Shows the progress of training on standard error: bars on a terminal, plain lines elsewhere.

    Parameters
    ----------
    show
        Whether to show anything; None shows it on a terminal only.
    clock
        Seconds, from any beginning.

    Examples
    --------
    >>> with Progress(show=False).phase("counting", 3) as bar:
    ...     bar.advance(3, loss=0.5)
    """

    def __init__(self, show: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(stderr=True, emoji=False, highlight=False)
        self._show = self._console.is_terminal if show is None else show
        self._clock = clock

    @contextmanager
    def phase(self, name: str, total: int) -> Iterator[Bar]:
        """Show documents per second, elapsed time and remaining time during a phase."""
        if not self._show:
            yield _NoBar()
        elif self._console.is_terminal:
            with RichProgress(*_columns(), console=self._console) as display:
                yield _TerminalBar(display, display.add_task(name, total=total, figures=""))
        else:
            self.say(f"{name}: started")
            lines = _Lines(self.say, self._clock, name, total)
            yield lines
            lines.end()

    def say(self, line: str) -> None:
        """Show a line."""
        if self._show:
            self._console.print(line, markup=False, soft_wrap=True)


def _columns() -> tuple[str | ProgressColumn, ...]:
    """Return what stands beside a bar: documents per second, elapsed and remaining time, figures."""
    return (
        "{task.description}",
        BarColumn(bar_width=16),
        "{task.percentage:>3.0f}%",
        _Speed(),
        TimeElapsedColumn(),
        "left",
        TimeRemainingColumn(),
        "{task.fields[figures]}",
    )


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
