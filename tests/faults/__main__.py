"""`python -m tests.faults [--kills 20] [--only NAMES] [--skip NAMES] [--data FOLDER]`: print which guarantees held."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

from lightdxml.data import save, see_also
from tests.faults import clusters, trials
from tests.faults.training import Lab


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="how often to kill at random moments (default: 20)")
    parser.add_argument("--only", help="names of trials, separated by commas (default: all)")
    parser.add_argument("--skip", default="", help="names of trials to leave out, separated by commas")
    parser.add_argument("--data", type=Path, help="a data set to train on (default: see-also)")
    arguments = parser.parse_args()
    # A shell lets commands in the background ignore it, and so would the commands under trial.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        lab = Lab(folder, arguments.data or save(see_also.build(), folder / "data", "jsonl"))
        print("| Guarantee | Tried | Held | Note |\n|---|--:|--:|---|")
        for trial in (
            partial(trials.kills, times=arguments.kills),
            partial(trials.kills_after_cycle, rounds=2),
            trials.signals,
            trials.interrupts_after_cycle,
            trials.truncations,
            trials.all_damaged,
            trials.full_disk,
            trials.full_spill,
            trials.killed_spill,
            trials.replaced,
            trials.swapped,
            trials.second_training,
            trials.read_only,
            partial(trials.learning_kills, times=arguments.kills),
            trials.two_lessons,
            trials.replays,
            clusters.killed_nodes,
            clusters.killed_workers,
            clusters.killed_drivers,
            clusters.small_stores,
            clusters.full_memory,
        ):
            name = (trial.func if isinstance(trial, partial) else trial).__name__
            chosen = arguments.only is None or name in arguments.only.split(",")
            if not chosen or name in arguments.skip.split(","):
                continue
            outcome = trial(lab)
            failed |= outcome.held != outcome.tried
            print(f"| {outcome.guarantee} | {outcome.tried} | {outcome.held} | {outcome.note} |", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
