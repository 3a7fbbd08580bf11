"""What the machine has: free memory by Linux and control groups, and sizes as people write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lightdxml.resources.system import free_memory, parse_size, resident_memory

MEMINFO = {"proc/meminfo": "MemTotal:       2000 kB\nMemFree:  10 kB\nMemAvailable:    1000 kB\n"}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_free_memory_is_what_linux_has_available(tmp_path: Path) -> None:
    assert free_memory(write(tmp_path, MEMINFO)) == 1000 * 1024


def test_memory_is_unknown_without_proc(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None
    assert resident_memory(tmp_path) is None


def test_resident_memory_is_read(tmp_path: Path) -> None:
    assert resident_memory(write(tmp_path, {"proc/self/status": "Name:\tx\nVmRSS:\t   12 kB\n"})) == 12 * 1024


def test_a_limit_of_control_groups_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/jobs/mine\n",
        "sys/fs/cgroup/jobs/mine/memory.max": "max\n",
        "sys/fs/cgroup/jobs/mine/memory.current": "300000\n",
        "sys/fs/cgroup/jobs/memory.max": "500000\n",
        "sys/fs/cgroup/jobs/memory.current": "400000\n",
        "sys/fs/cgroup/jobs/memory.stat": "anon 1\ninactive_file 50000\nactive_file 7\n",
    }
    assert free_memory(write(tmp_path, MEMINFO | files)) == 150_007


def test_a_limit_of_control_groups_of_version_1_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/other\n4:memory:/mine\n0::/\n",
        "sys/fs/cgroup/memory/mine/memory.limit_in_bytes": "500000\n",
        "sys/fs/cgroup/memory/mine/memory.usage_in_bytes": "600000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "600000\n",
    }
    assert free_memory(write(tmp_path, MEMINFO | files)) == 0


def test_in_a_container_the_limit_of_the_mount_itself_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/outside/of/here\n",
        "sys/fs/cgroup/memory.max": "700000\n",
        "sys/fs/cgroup/memory.current": "100000\n",
    }
    assert free_memory(write(tmp_path, MEMINFO | files)) == 600_000


def test_damaged_files_of_control_groups_are_skipped(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "nonsense\n0::/\n:\n", "sys/fs/cgroup/memory.max": "-1\n"}
    assert free_memory(write(tmp_path, MEMINFO | files)) == 1000 * 1024


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GB", 4 * 10**9),
        ("500MB", 5 * 10**8),
        ("1.5g", 15 * 10**8),
        (" 2 GiB ", 2**31),
        ("7000000", 7_000_000),
        (".5k", 500),
    ],
)
def test_sizes_are_parsed(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "0.0001", "4XB", "1e9", "nan", "inf", "4 GB GB", "3i", "٣GB"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size: write a number above 0 with KB, MB, GB or TB"):
        parse_size(text)


def test_a_small_number_without_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="'4' has no unit: write 4MB or 4GB"):
        parse_size("4")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report what is used")
def test_a_limit_of_the_address_space_counts() -> None:
    program = (
        "import resource; from lightdxml.resources.system import free_memory\n"
        "resource.setrlimit(resource.RLIMIT_AS, (300_000_000, 300_000_000)); print(free_memory())"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert 0 < int(out) < 300_000_000
