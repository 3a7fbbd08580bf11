"""What the machine has: free memory, control groups, and sizes as people write them."""

from __future__ import annotations

import re
from pathlib import Path

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def free_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process may still use, from Linux and its control groups; None if unknown."""
    known = [_kilobytes(root / "proc/meminfo", "MemAvailable"), *_left_in_groups(root), _left_of_address_space(root)]
    return min((size for size in known if size is not None), default=None)


def resident_memory(root: Path = Path("/")) -> int | None:
    """Return the resident memory of this process in bytes; None if unknown."""
    return _kilobytes(root / "proc/self/status", "VmRSS")


class MemoryLimitError(ValueError):
    """Something needs more memory than there is."""


def check_memory(what: str, need: int, limit: int | None) -> None:
    """Raise a `MemoryLimitError` if a step would exceed the limit of this process, or the free memory without one.

    Parameters
    ----------
    what
        The step, as the subject of a sentence.
    need
        What it adds to the memory of the process, in bytes.
    limit
        The most memory that the process may take; None for what the machine has.

    Examples
    --------
    >>> check_memory("reading", 10**15, limit=None)
    Traceback (most recent call last):
    lightdxml.resources.system.MemoryLimitError: reading needs 1,000,000.0 GB of memory, and ... are left: ...
    """
    held = resident_memory() or 0
    left = free_memory() if limit is None else limit - held
    if left is None or need <= left:
        return
    there = f"{what} needs {format_bytes(need)} of memory, and {format_bytes(max(0, left))} are left"
    if limit is not None:
        raise MemoryLimitError(f"{there} of the limit: raise it to {format_bytes(held + need)}, or use fewer documents")
    raise MemoryLimitError(f"{there}: use fewer documents, or a machine with more memory")


def _kilobytes(path: Path, name: str) -> int | None:
    """Return the value of a line such as `VmRSS:  120 kB` in bytes."""
    found = re.search(rf"^{name}:\s*(\d+) kB$", _text(path), re.MULTILINE)
    return None if found is None else 1024 * int(found[1])


def _left_of_address_space(root: Path) -> int | None:
    """Return what `ulimit -v` leaves; None if there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, used = resource.getrlimit(resource.RLIMIT_AS)[0], _kilobytes(root / "proc/self/status", "VmSize")
    return None if limit == resource.RLIM_INFINITY or used is None else max(0, limit - used)


def _left_in_groups(root: Path) -> list[int | None]:
    """Return what is left in each control group of this process, of version 1 or 2, and in its parents."""
    mount = root / "sys/fs/cgroup"
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, kinds, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and kinds == "":
            where, names = mount, ("memory.max", "memory.current", "")
        elif "memory" in kinds.split(","):
            where, names = mount / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        # In a container the path may lie outside of the mount: then the files of the mount itself count.
        group = Path(path.strip("/"))
        left += [_left(where / folder, *names) for folder in (group, *group.parents)]
    return left


def _left(folder: Path, limit: str, usage: str, prefix: str) -> int | None:
    most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
    if not most.isdecimal() or not used.isdecimal():
        return None
    # Pages of files count as used, but the kernel reclaims them.
    cached = re.findall(rf"^{prefix}(?:in)?active_file (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
    return max(0, int(most) - int(used) + sum(map(int, cached)))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 4GB, 500 MB, 1.5g or 2GiB.

    >>> parse_size("4GB"), parse_size("1.5g"), parse_size("1KiB"), parse_size("2000000")
    (4000000000, 1500000000, 1024, 2000000)
    >>> parse_size("much")
    Traceback (most recent call last):
    ValueError: 'much' is not a size: write a number above 0 with KB, MB, GB or TB, such as 4GB
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)(I?)B?", text.strip().upper())
    size = 0
    if found is not None and (found[2] or not found[3]):
        units = _BINARY_UNITS if found[3] else _UNITS
        size = round(float(found[1]) * units[found[2]])
    if size <= 0:
        raise ValueError(f"{text!r} is not a size: write a number above 0 with KB, MB, GB or TB, such as 4GB")
    if found is not None and not found[2] and size < _UNITS["M"]:
        raise ValueError(f"{text!r} has no unit: write {text.strip()}MB or {text.strip()}GB")
    return size


def format_bytes(size: int) -> str:
    """Return a size in megabytes or gigabytes.

    >>> format_bytes(1_340_000_000), format_bytes(215_400_000)
    ('1.3 GB', '215 MB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 999_500_000 else f"{size / 1e6:,.0f} MB"
