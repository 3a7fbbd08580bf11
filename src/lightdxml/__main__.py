"""The entry point of `lightdxml` and `python -m lightdxml`. Ctrl-C ends it without a traceback, also during imports."""

from __future__ import annotations

import gc
import sys

# Imports make hundreds of thousands of objects that stay. With Python's default threshold the collector would visit
# them again and again: a tenth of a second, for commands that take one.
_SHORT_COMMANDS, _GC_THRESHOLD = ("predict", "explain"), 100_000


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] and sys.argv[1] in _SHORT_COMMANDS:
        gc.set_threshold(_GC_THRESHOLD)
    try:
        from lightdxml.cli import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemError as error:
        # Compiled code that is interrupted while it is loaded.
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
        sys.exit(130)


if __name__ == "__main__":
    main()
