"""`lightdxml tune`."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lightdxml.cli.output import Json, NJobs, RandomState, Source, note, print_json, print_table, say, seconds_of
from lightdxml.cli.reading import Reading, reading_options, with_reading
from lightdxml.cli.settings import plain

if TYPE_CHECKING:
    from lightdxml.presets import Preset
    from lightdxml.tuning.study import Outcome, Plan, Study, Trial

_TRIALS = 50
_MEASURES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@3", "PSP@5")


@with_reading
def run(
    data: Source,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            help="What to maximize: P@k, nDCG@k, PSP@k, PSnDCG@k, R@k, RP@k, coverage@k, macro-F1@k, R-precision, or"
            " micro-F1, macro-F1 or samples-F1 at the best threshold.",
        ),
    ] = "P@5",
    tail: Annotated[float, typer.Option("--tail", help="Preference for rare labels when trials are measured.")] = 0.0,
    trials: Annotated[
        int, typer.Option("--trials", help="Number of trials, including earlier ones in the storage.", min=1)
    ] = _TRIALS,
    time: Annotated[
        str | None, typer.Option("--time", help="Stop after this time, such as 90s, 30m or 2h.", metavar="TIME")
    ] = None,
    storage: Annotated[
        str,
        typer.Option(
            "--storage",
            help="File for the trials, from which the same command continues: SQLite or, if the name ends in `.log`, a"
            " journal for several processes. Or the URL of a database.",
            metavar="FILE",
        ),
    ] = "tune.db",
    out: Annotated[
        Path, typer.Option("--out", help="File to write the best settings to, for `train --preset`.")
    ] = Path("preset.json"),
    preset: Annotated[
        str,
        typer.Option("--preset", help="Preset for all settings that are not varied.", metavar="NAME|FILE"),
    ] = "default",
    space: Annotated[
        Path | None,
        typer.Option("--space", help="JSON file with the settings to vary.", metavar="FILE"),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune/--no-prune", help="Stop a trial early if it is in the worse half so far.")
    ] = True,
    vocabulary: Annotated[
        Path | None,
        typer.Option("--vocabulary", help="Vocabulary with the names of labels, as for `train`.", metavar="FILE"),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option("--memory-limit", help="Skip trials that may need more memory than this.", metavar="4GB"),
    ] = None,
    random_state: RandomState = 0,
    n_jobs: NJobs = None,
    json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a preset file of another study.")] = False,
    *,
    reading: Reading,
) -> None:
    """Find settings that are better for a data set than the defaults.

    Each trial trains a model with other settings and measures it on the dev part of the data set or, without one, on
    training documents that are held out from all trials. The test part is not used. The first trial has the defaults.
    Trials that are clearly worse stop early.

    Ctrl-C loses only the running trial, and the same command continues. Several processes with the same storage share
    the work.

    Example: `lightdxml tune see-also --metric PSP@5 --trials 20`
    """
    _require_optuna()
    from lightdxml import presets
    from lightdxml.data import load
    from lightdxml.data.files import check_replaceable
    from lightdxml.data.vocabulary import Vocabulary
    from lightdxml.resources.system import parse_size
    from lightdxml.tuning import result
    from lightdxml.tuning.documents import Documents
    from lightdxml.tuning.metric import Metric
    from lightdxml.tuning.space import read_space
    from lightdxml.tuning.study import Plan, Study

    # Mistakes are reported before the data is read.
    plan = Plan(
        Metric.of(metric, tail), trials, None if time is None else seconds_of(time, "--time"), storage,
        presets.find(preset), None if space is None else read_space(space), random_state, prune, n_jobs,
        None if memory_limit is None else parse_size(memory_limit),
    )  # fmt: skip
    plan.preset.config()
    check_replaceable(out, b"", "a preset", "preset.json")
    concepts = None if vocabulary is None else Vocabulary.load(vocabulary, encoding=reading.get("encoding", "utf-8"))
    documents = Documents.of(load(data, **reading), concepts)
    study = Study(documents, plan)
    about = result.study_id(study.identity)
    if not force:
        result.check_target(out, about)
    kind = "held-out training documents" if documents.held_out else "dev documents"
    note(f"{documents.name}: trials are measured on {len(documents.judged):,} {kind}")
    with _stopped(study, storage):
        try:
            found = study.run(lambda trial, so_far: _show_trial(trial, so_far, plan))
        finally:
            if study.outcome().best is not None:
                presets.write(out, result.best_preset(documents, plan, study.outcome(), about))
    if found.best is None:
        raise ValueError(f"no trial was finished ({found.ended}): raise --time or --trials")
    best = presets.read(out)
    if json:
        print_json(_as_json(found, best, out))
        return
    _show(found, best, plan)
    if found.default is not None and found.best.number == found.default.number:
        return
    words = ["lightdxml", "train", data, "--preset", str(out), "--model", "tuned-model", *reading_options(reading)]
    words += [] if vocabulary is None else ["--vocabulary", str(vocabulary)]
    say(f"The settings are in {out}. Next: {shlex.join(words)}")


def _require_optuna() -> None:
    if find_spec("optuna") is None:
        raise ImportError('tuning needs optuna: pip install "lightdxml[tune]"')


@contextmanager
def _stopped(study: Study, storage: str) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop a study, and say how it goes on."""
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        study.stopped = True
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Ignored signals stay ignored, as after nohup.
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt as stopped:
        done, where = len(study.outcome().trials), "the database" if "://" in storage else storage
        command = shlex.join(["lightdxml", *sys.argv[1:]])
        note(f"stopped; {done} trials are in {where}; continue with: {command}")
        raise typer.Exit(128 + (received[-1] if received else signal.SIGINT)) from stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_trial(trial: Trial, found: Outcome, plan: Plan) -> None:
    """Show a trial in a line."""
    name, best = plan.metric.name, found.best
    shown = {
        "done": f"{name} {trial.value or 0:.2f}",
        "pruned": f"stopped early ({trial.note})",
        "failed": f"failed ({trial.note})",
    }[trial.outcome]
    so_far = "" if best is None else f"; best {best.value:.2f}"
    if best is not None and trial.number == best.number:
        so_far = f"; the best so far: {_settings(trial.settings) or 'the defaults'}"
    note(f"trial {len(found.trials)} of {plan.trials}: {shown}, {trial.seconds:.1f} s{so_far}")


def _settings(settings: dict[str, object]) -> str:
    return ", ".join(f"{name}={plain(tuple(one) if isinstance(one, list) else one)}" for name, one in settings.items())


def _show(found: Outcome, preset: Preset, plan: Plan) -> None:
    """Show the defaults and the best trial side by side."""
    best, default, name = found.best, found.default, plan.metric.name
    assert best is not None
    columns = [name, *(one for one in _MEASURES if one != name)]
    rows = [] if default is None else [["defaults", *(f"{default.metrics[one]:.2f}" for one in columns), ""]]
    if default is not None and best.number != default.number:
        rows.append(["best trial", *(f"{best.metrics[one]:.2f}" for one in columns), ""])
        rows.append(["difference", *(f"{best.metrics[one] - default.metrics[one]:+.2f}" for one in columns), ""])
    documents = preset.about["documents"]
    print_table(f"{preset.about['data']}: {documents:,} documents, in percent", ("", *columns, ""), rows)
    counted = preset.about["trials"]
    say(
        f"{counted['done']} trials finished, {counted['pruned']} stopped early, {counted['failed']} failed"
        f" ({found.ended}), {found.seconds:,.0f} s in all."
    )
    if default is not None and best.number == default.number:
        say("No trial is better than the defaults.")
        return
    say(f"Best settings: {_settings(dict(preset.settings))}.")
    say("They were chosen on these documents: expect a smaller gain on others.")


def _as_json(found: Outcome, preset: Preset, out: Path) -> dict[str, object]:
    trials = [
        {
            "outcome": one.outcome,
            "value": one.value,
            "settings": one.settings,
            "metrics": one.metrics,
            "seconds": one.seconds,
            "note": one.note,
        }
        for one in found.trials
    ]
    settings = {name: list(one) if isinstance(one, tuple) else one for name, one in preset.settings.items()}
    return {"preset": str(out), "settings": settings, **preset.about, "ended": found.ended, "all_trials": trials}
