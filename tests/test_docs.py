"""The examples of the documentation run, and print what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

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
