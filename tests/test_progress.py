"""Progress where there is no terminal."""

from __future__ import annotations

import pytest

from lightdxml.progress import Progress


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_long_phases_print_a_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Progress(show=True, clock=clock).phase("epoch 1", 1000) as bar:
        for _ in range(10):
            clock.now += 7
            bar.advance(100, loss=0.25)
    assert capsys.readouterr().err.splitlines() == [
        "epoch 1: started",
        "epoch 1: 50% in 35 s, 35 s left  loss 0.25",
        "epoch 1: done in 70.0 s  loss 0.25",
    ]


def test_short_phases_print_their_beginning_and_their_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Progress(show=True, clock=clock).phase("[words]", 10) as bar:
        clock.now += 0.5
        bar.advance(10, words=6553)
    assert capsys.readouterr().err.splitlines() == ["[words]: started", "[words]: done in 0.5 s  words 6,553"]


def test_a_phase_that_fails_is_not_done(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no"), Progress(show=True).phase("epoch 1", 10):
        raise ValueError("no")
    assert capsys.readouterr().err.splitlines() == ["epoch 1: started"]
