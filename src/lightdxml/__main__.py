"""`python -m lightdxml` is `lightdxml`."""

from lightdxml.cli import main

if __name__ == "__main__":
    main()
