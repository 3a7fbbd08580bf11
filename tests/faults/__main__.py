"""`python -m tests.faults [--kills 20]`: make the faults, and print what was promised and what held."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults import trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        place = trials.Place(Path(folder))
        print("| promise | tried | held | |\n|---|---|---|---|")
        for trial in (
            lambda place: trials.kills(place, arguments.kills),
            trials.signals,
            trials.truncations,
            trials.all_damaged,
            trials.full_disk,
            trials.full_scratch,
            trials.killed_scratch,
            trials.replaced,
            trials.second_training,
            trials.read_only,
        ):
            outcome = trial(place)
            failed |= outcome.held != outcome.tried
            print(f"| {outcome.promise} | {outcome.tried} | {outcome.held} | {outcome.remark} |", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
