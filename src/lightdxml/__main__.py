"""The entry point of `lightdxml` and `python -m lightdxml`. Ctrl-C ends it without a traceback, also during imports."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
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
