"""The examples of the documentation run, and print what the pages say."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from lightdxml.cli import application
from tests.support import pages

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The commands of a decision belong to the commit that it was made at.
RUN = [page for page in PAGES if page.parent.name != "decisions" and pages.examples(page)]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in RUN])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages.run(ROOT / page)


def test_no_example_escapes_by_another_name_of_its_language() -> None:
    for page in PAGES:
        names = {block.language for block in pages.blocks(page.read_text("utf-8"))}
        assert not names & {"bash", "shell", "console", "py", "python3", "pycon", ""}, page


def test_the_two_commands_of_the_readme_are_complete_on_one_line() -> None:
    found = pages.blocks(PAGES[0].read_text("utf-8"))
    lines = [line for block in found for line in block.code.splitlines() if line.startswith("python3 -m venv")]
    assert len(lines) == 2
    assert lines[0].endswith("lightdxml evaluate see-also-model see-also")
    assert lines[1].endswith("pytest -q -n 2 --dist loadfile")


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for one in getattr(command, "commands", {}).values():
        yield from _commands(one, f"{path} {one.name}")


def test_the_page_of_commands_has_all_options_in_tables_of_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx", reason="needs the extra docs")
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    page = importlib.import_module("commands").markdown()
    sections = dict(re.findall(r"^##+ (lightdxml .*)\n((?:(?!##).*\n)*)", page + "\n", re.MULTILINE))
    for path, command in list(_commands(typer.main.get_command(application()), "lightdxml"))[1:]:
        missing = [one.opts[-1] for one in command.params if not re.search(rf"`{one.opts[-1]}\b", sections[path])]
        assert [one for one in missing if one.startswith("-")] == [], path
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in page.splitlines() if row.startswith("|"))


PAGE = """
<!-- run: echo hidden > file -->

```python
from pathlib import Path

x = 1
```

1. List:

  ```sh
  cat file; sleep 60 &
  ```
  ```output
  hid...
  ```

<!-- not run: needs a cluster -->
```sh
exit 1
```

```python
print(x, Path("file").read_text())
```

```output
1 hidden
```
"""


def test_blocks_run_in_order_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    pages.run(page)
    page.write_text(PAGE.replace("1 hidden", "2 hidden"))
    with pytest.raises(AssertionError, match=r"page\.md:2\d should print\n2 hidden\n"):
        pages.run(page)
    page.write_text(PAGE.replace("needs a cluster -->", "needs a cluster -->\nSome text."))
    with pytest.raises(ValueError, match="not stand directly before a block"):
        pages.run(page)
