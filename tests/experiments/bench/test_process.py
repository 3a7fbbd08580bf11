"""Processes of cells, with programs that misbehave as real methods sometimes do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lightdxml.cli import application
from lightdxml.experiments.bench import grid, process
from lightdxml.experiments.bench.cell import Job
from tests.experiments.bench.conftest import FakeCell
from tests.support.commands import run as run_command

if sys.platform == "win32":
    pytest.skip("the programs use signals that this system does not have", allow_module_level=True)

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def run(tmp_path: Path, timeout: float = 30.0) -> Any:
    return process.run(Job(str(tmp_path), "tiny", "knn", "knn", {}), timeout)


def log_of(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "tiny.knn.0.log"


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()  # a zombie has ended
    except ProcessLookupError:
        return False
    except OSError:
        return sys.platform != "linux"


def ends(pid: int) -> bool:
    """Return whether a process ends within a few seconds."""
    for _ in range(100):
        if not is_running(pid):
            return True
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    return False


def send_later(number: int, log: Path) -> None:
    """Send this process a signal as soon as the cell has written a line."""

    def send() -> None:
        while not (log.exists() and log.read_text().endswith("\n")):
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()


def test_a_failed_process_reports_the_last_line_of_its_output(tmp_path: Path, fake_cell: FakeCell) -> None:
    fake_cell.does("print('RuntimeError: bad luck', flush=True)", "os._exit(1)")
    assert run(tmp_path) == {"status": "failed", "message": "RuntimeError: bad luck (output: tiny.knn.0.log)"}


def test_a_killed_process_reports_the_signal(tmp_path: Path, fake_cell: FakeCell) -> None:
    fake_cell.does("os.kill(os.getpid(), 9)")
    assert run(tmp_path)["message"] == "ended by SIGKILL (out of memory?) (output: tiny.knn.0.log)"


def test_a_slow_process_is_stopped_at_the_timeout(tmp_path: Path, fake_cell: FakeCell) -> None:
    fake_cell.does("time.sleep(60)")
    assert run(tmp_path, timeout=0.5) == {"status": "timeout", "message": "stopped after 0.5 s", "limit": 0.5}


@linux
def test_peak_memory_does_not_include_the_parent_process() -> None:
    held = bytearray(400_000_000)
    held[::4096] = b"x" * len(held[::4096])
    code = "from lightdxml.progress import peak_memory; print(peak_memory()['peak_mb'])"
    peak = float(subprocess.check_output([sys.executable, "-c", code], start_new_session=True))
    assert 5 < peak < len(held) / 1e6


@linux
def test_peak_memory_includes_child_processes(tmp_path: Path, fake_cell: FakeCell) -> None:
    code = "held = b'x' * 150_000_000; print(1, flush=True); input()"
    start = f"[sys.executable, '-S', '-c', {code!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE"
    fake_cell.does(
        f"p = subprocess.Popen({start})", "p.stdout.readline()", "time.sleep(0.7)", "p.kill()", "done(peak_mb=1)"
    )
    assert 150 < run(tmp_path)["peak_mb"] < 300


@pytest.mark.parametrize("ending", ["os._exit(1)", "time.sleep(60)"])
def test_child_processes_do_not_outlive_a_cell(tmp_path: Path, fake_cell: FakeCell, ending: str) -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    start = f"[sys.executable, '-S', '-c', {stubborn!r}], stdout=subprocess.PIPE, env={{}}"
    fake_cell.does(f"p = subprocess.Popen({start})", "p.stdout.readline()", "print(p.pid, flush=True)", ending)
    assert run(tmp_path, timeout=1.0)["status"] in ("failed", "timeout")
    assert ends(int(log_of(tmp_path).read_text()))


def test_an_interrupted_benchmark_stops_its_cell(tmp_path: Path, fake_cell: FakeCell) -> None:
    fake_cell.does("print(os.getpid(), flush=True)", "time.sleep(60)")
    log = log_of(tmp_path)
    send_later(signal.SIGINT, log)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert ends(int(log.read_text()))


@pytest.fixture
def kept_handlers() -> Iterator[None]:
    """Signal handlers are restored after the test."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("kept_handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_benchmark_stops_its_cell_and_says_how_to_resume(
    tmp_path: Path, source: Path, fake_cell: FakeCell, number: int
) -> None:
    fake_cell.does("print(os.getpid(), flush=True)", "time.sleep(60)")
    signal.signal(number, lambda *_: None)
    out = tmp_path / "out"
    send_later(number, log_of(out))
    result = CliRunner().invoke(application(), ["bench", "--data", str(source), "--methods", "knn", "--out", str(out)])
    assert result.exit_code == 130
    assert "run the same command to resume" in result.output
    assert ends(int(log_of(out).read_text()))


@pytest.mark.usefixtures("kept_handlers")
def test_a_benchmark_under_nohup_ignores_the_end_of_the_terminal(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang_up(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGHUP)
        raise ValueError("still running")

    monkeypatch.setattr(grid, "run", hang_up)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with pytest.raises(ValueError, match="still running"):
        run_command("bench", "--data", source, "--methods", "knn", "--out", tmp_path)


@linux
def test_a_cell_ends_when_its_parent_is_killed() -> None:
    code = """if True:
        import os, time
        from lightdxml.experiments.bench import cell
        parent, (ready, say) = os.getpid(), os.pipe()
        child = os.fork()
        if child == 0:
            os.close(1)
            cell._end_with(parent)
            os.write(say, b"x")
            time.sleep(60)
        os.read(ready, 1)
        print(child, flush=True)
        os.kill(parent, 9)
    """
    ran = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
    assert ends(int(ran.stdout))


def test_temporary_files_of_a_cell_are_removed(tmp_path: Path, fake_cell: FakeCell) -> None:
    fake_cell.does("open(os.environ['TMPDIR'] + '/left', 'w')", "done(tmp=os.environ['TMPDIR'])")
    folder = Path(run(tmp_path)["tmp"])
    assert folder.parent == tmp_path
    assert not folder.exists()
