"""What training will need: counted as its arrays are, refused in time, and with settings that do fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix

from lightdxml.config import Config, configure
from lightdxml.training import classifier, embedding, memory
from lightdxml.training import fit as fitting
from lightdxml.training.memory import (
    MemoryLimitError,
    Sizes,
    check,
    estimate,
    free_memory,
    parse_size,
    settings_that_fit,
)
from tests.processor import kept

LARGE = Sizes(500_000, 200_000, 100_000, 50_000_000, 2_500_000)
MANY_DOCUMENTS = Sizes(2_000_000, 1_000, 2_000, 2_000_000, 2_000_000)
CONFIG = Config(D=8, k=5, batch_size=4, random_negatives=2)


def held(config: Config = CONFIG) -> dict[str, int]:
    """What a small training of 40 documents, 30 features and 20 labels is said to hold from beginning to end."""
    return dict(memory._held_always(Sizes(40, 30, 20, 400, 80), config))


def test_weights_and_optimiser_are_the_bytes_of_their_arrays() -> None:
    rng = np.random.default_rng(0)
    features, classes = embedding.start(30, CONFIG, rng, None), classifier.start(20, CONFIG, rng)
    assert held()["weights"] == features.encoder.vectors.nbytes + classes.W.nbytes
    moving = (features.mean, features.square, classes.mean, classes.square)
    assert held()["optimiser"] == sum(array.nbytes for array in moving)


def test_room_for_batches_is_the_bytes_of_its_arrays() -> None:
    # Two labels a document: then the largest batch is one like any other.
    rows, columns = np.repeat(np.arange(40), 2), np.arange(80) % 20
    Y = csr_matrix((np.ones(80, dtype=np.float32), (rows, columns)), (40, 20))
    room = classifier.scratch(Y, CONFIG.k, 0, CONFIG)
    state = embedding.start(30, CONFIG, np.random.default_rng(0), None)
    arrays = [value for value in vars(room).values() if isinstance(value, np.ndarray)]
    arrays += [state.counts, state.found, state.found_pointers]
    assert held()["batches"] == pytest.approx(sum(array.nbytes for array in arrays), abs=100)


def test_features_are_counted_as_given_and_as_checked() -> None:
    rng = np.random.default_rng(0)
    X, Y = csr_matrix(rng.random((40, 30), dtype=np.float32)), csr_matrix(np.ones((40, 2), dtype=np.float32))
    sizes = Sizes(40, 30, 2, X.nnz, Y.nnz)
    given = sum(a.nbytes for m in (X, Y) for a in (m.data, m.indices, m.indptr))
    assert sizes.matrices(40) == given
    transposed = csr_matrix(Y.T)
    small = transposed.data.nbytes + transposed.indices.nbytes + 3 * 8 * 2
    assert memory._held_features(sizes, CONFIG) == 2 * given + small
    assert memory._held_features(replace(sizes, validation=40), CONFIG) == 4 * given + small
    assert memory._held_features(replace(sizes, given_stays=False), CONFIG) == given + small


def test_only_what_scratch_moves_is_left_out_of_the_estimate() -> None:
    sizes = replace(MANY_DOCUMENTS, entries=100_000_000)
    scratch = replace(sizes, scratch=True)
    trained = sizes.documents - sizes.set_aside(Config())
    moved = 8 * sizes.entries * trained // sizes.documents
    whole, rest = (memory._moments(which, Config()) for which in (sizes, scratch))
    assert whole["epoch"]["features"] - rest["epoch"]["features"] == moved
    assert whole["epoch"]["shortlists"] - rest["epoch"]["shortlists"] == 4 * trained * Config().k
    others = ("features", "shortlists")
    for name, moment in whole.items():
        kept = {part: size for part, size in moment.items() if part not in others}
        assert kept == {part: size for part, size in rest[name].items() if part not in others}
    # Before they are moved, features are in memory.
    assert rest["moving"] == whole["moving"]


def test_a_limit_counts_with_scratch_too(tmp_path: Path) -> None:
    X = csr_matrix(np.eye(30, dtype=np.float32))
    with pytest.raises(MemoryLimitError, match="the limit is 1 MB"):
        fitting.fit(X, X, CONFIG, memory_limit=10**6, scratch=tmp_path)


def sparse(kind: str) -> Any:
    """A matrix of 600 × 2,000 with 30,000 entries, in a form that a user may give."""
    rng = np.random.default_rng(0)
    dense = np.zeros((600, 2000), dtype=np.float32)
    dense[np.repeat(np.arange(600), 50), np.concatenate([rng.permutation(2000)[:50] for _ in range(600)])] = 1
    if kind == "dense":
        return dense
    X = csr_matrix(dense, dtype=np.float32 if kind == "as trained" else np.float64)
    if kind == "64 bits":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return csr_array(X) if kind == "array" else X.tocsc() if kind == "by column" else X


@pytest.mark.parametrize("kind", ["as trained", "dense", "64 bits", "array", "by column"])
def test_a_larger_matrix_of_the_user_counts_with_all_that_it_holds(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was subtracted once was all of it, and what the estimate counted was a small copy."""
    X = sparse(kind)
    arrays = [X] if kind == "dense" else [X.data, X.indices, X.indptr]
    held = sum(array.nbytes for array in arrays)
    monkeypatch.setattr(memory, "resident_memory", lambda: memory._PROGRAM + held + 7_000_000)
    Y = np.ones((600, 1))
    prepared = fitting.prepare(X, Y, CONFIG)
    others = memory.held_besides(prepared.held, prepared.given)
    sizes = prepared.sizes
    counted = sizes.matrices(600)
    # Y is not in what is said to be held here: the few bytes that are counted of it.
    assert others + counted == pytest.approx(held + 7_000_000, abs=8 * 600 + 2 * 4 * 601 + 3000)


@pytest.mark.parametrize("n", [1, 19, 20, 41, 200_000])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_as_many_validation_documents_are_expected_as_fit_sets_aside(n: int, share: float) -> None:
    config = replace(CONFIG, validation=share)
    Y = csr_matrix(np.ones((n, 1), dtype=np.float32))
    X, _, X_validation, _ = fitting.set_aside(Y, Y, config)
    expected = 0 if X is X_validation else X_validation.shape[0]
    assert Sizes(n, 1, 1, n, n).set_aside(config) == expected


def test_the_total_is_the_largest_moment_and_not_the_sum_of_all() -> None:
    moments = memory._moments(LARGE, Config())
    need = estimate(LARGE, Config())
    assert need.total == max(sum(moment.values()) for moment in moments.values())
    assert tuple(need.parts) == memory.PARTS
    assert min(need.parts.values()) >= 0


@pytest.mark.parametrize("which", ["documents", "features", "labels", "entries", "pairs"])
def test_more_data_needs_more(which: str) -> None:
    # Twice the documents, not documents of half the length.
    doubled = ("documents", "entries", "pairs") if which == "documents" else (which,)
    more = replace(LARGE, **{name: 2 * getattr(LARGE, name) for name in doubled})
    assert estimate(more, Config()).total > estimate(LARGE, Config()).total


@pytest.mark.parametrize("setting", [{"D": 768}, {"k": 2000}, {"batch_size": 50_000}, {"index": "hnsw"}], ids=str)
def test_larger_settings_need_more(setting: dict[str, Any]) -> None:
    least: dict[str, Any] = {"index": "exact"}
    assert estimate(LARGE, Config(**(least | setting))).total > estimate(LARGE, Config(**least)).total


@pytest.mark.parametrize("kind", kept("sketch", "ivf"))
def test_another_index_beside_an_exact_one_counts_and_alone_copies_the_vectors_as_bytes_at_the_most(kind: Any) -> None:
    exact, both, alone = (memory._moments(LARGE, Config(index=index)) for index in ("exact", "auto", kind))
    assert both["search"]["index"] > exact["search"]["index"]
    assert alone["epoch"]["index"] < 0.65 * exact["epoch"]["index"]


def test_float32_keeps_a_larger_best_model() -> None:
    half, single = (memory._moments(LARGE, Config(precision=precision)) for precision in ("float16", "float32"))
    assert single["epoch"]["best model"] == 2 * half["epoch"]["best model"]


def test_a_tiny_training_is_the_program_and_little_else() -> None:
    need = estimate(Sizes(2, 3, 1, 4, 2), CONFIG)
    assert need.parts["program"] > 0.9 * need.total


@pytest.mark.parametrize("sizes", [LARGE, MANY_DOCUMENTS], ids=["large", "many documents"])
@pytest.mark.parametrize("share", [0.95, 0.8, 0.6])
def test_settings_that_are_offered_do_fit(sizes: Sizes, share: float) -> None:
    limit = int(share * estimate(sizes, Config()).total)
    changes = settings_that_fit(sizes, Config(), limit)
    assert changes
    assert estimate(sizes, replace(Config(), **changes)).total <= limit
    for name in changes:
        without = {other: value for other, value in changes.items() if other != name}
        assert estimate(sizes, replace(Config(), **without)).total > limit, f"{name} need not change"


def test_the_shortlists_are_shortened_before_the_space_is() -> None:
    limit = int(0.95 * estimate(MANY_DOCUMENTS, Config(k=1000)).total)
    changes = settings_that_fit(MANY_DOCUMENTS, Config(k=1000), limit)
    assert changes is not None
    assert list(changes) == ["k"]


def test_nothing_changes_where_it_fits_and_nothing_is_offered_where_nothing_fits() -> None:
    assert settings_that_fit(LARGE, Config(), 10**12) == {}
    assert settings_that_fit(LARGE, Config(), 10**8) is None


def test_refusal_says_need_limit_and_what_to_change() -> None:
    limit = int(0.7 * estimate(LARGE, Config()).total)
    with pytest.raises(MemoryLimitError) as refused:
        check(LARGE, Config(), limit)
    message = str(refused.value)
    assert f"needs {memory.size_for_people(estimate(LARGE, Config()).total)}" in message
    assert f"the limit is {memory.size_for_people(limit)}" in message
    given: dict[str, Any] = dict(part.split("=") for part in message.partition("fit with ")[2].split(", "))
    assert check(LARGE, configure(**given), limit).total <= limit
    assert "\n" not in message


def test_refusal_without_settings_that_fit_says_what_else_to_do() -> None:
    with pytest.raises(MemoryLimitError, match="no k or D is small enough, so try it with a scratch folder"):
        check(LARGE, Config(), 10**8)


def test_free_memory_is_the_limit_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    need = estimate(LARGE, Config()).total
    monkeypatch.setattr(memory, "free_memory", lambda: need)
    assert check(LARGE, Config()).total == need
    monkeypatch.setattr(memory, "free_memory", lambda: need // 4)
    with pytest.raises(MemoryLimitError, match="this machine has"):
        check(LARGE, Config())
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    assert check(LARGE, Config()).total == need


def test_what_the_process_holds_already_is_not_asked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    need = estimate(LARGE, Config()).total
    monkeypatch.setattr(memory, "free_memory", lambda: need - 100_000_000)
    monkeypatch.setattr(memory, "resident_memory", lambda: 120_000_000)
    assert check(LARGE, Config()).total == need
    monkeypatch.setattr(memory, "resident_memory", lambda: 0)
    with pytest.raises(MemoryLimitError):
        check(LARGE, Config())


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


MEMINFO = {"proc/meminfo": "MemTotal:       2000 kB\nMemFree:  10 kB\nMemAvailable:    1000 kB\n"}


def test_free_memory_is_what_linux_has_available(tmp_path: Path) -> None:
    assert free_memory(write(tmp_path, MEMINFO)) == 1000 * 1024


def test_free_memory_is_unknown_without_proc(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None
    assert memory.resident_memory(tmp_path) is None


def test_resident_memory_is_read(tmp_path: Path) -> None:
    assert memory.resident_memory(write(tmp_path, {"proc/self/status": "Name:\tx\nVmRSS:\t   12 kB\n"})) == 12 * 1024


def test_a_limit_of_control_groups_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/jobs/mine\n",
        "sys/fs/cgroup/jobs/mine/memory.max": "max\n",
        "sys/fs/cgroup/jobs/mine/memory.current": "300000\n",
        "sys/fs/cgroup/jobs/memory.max": "500000\n",
        "sys/fs/cgroup/jobs/memory.current": "400000\n",
        "sys/fs/cgroup/jobs/memory.stat": "anon 1\ninactive_file 50000\nactive_file 7\n",
    }
    assert free_memory(write(tmp_path, MEMINFO | files)) == 150_000


def test_a_limit_of_old_control_groups_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/other\n4:memory:/mine\n0::/\n",
        "sys/fs/cgroup/memory/mine/memory.limit_in_bytes": "500000\n",
        "sys/fs/cgroup/memory/mine/memory.usage_in_bytes": "600000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "600000\n",
    }
    assert free_memory(write(tmp_path, MEMINFO | files)) == 0


def test_in_a_container_the_mount_s_own_limit_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/outside/of/here\n",
        "sys/fs/cgroup/memory.max": "700000\n",
        "sys/fs/cgroup/memory.current": "100000\n",
    }
    assert free_memory(write(tmp_path, MEMINFO | files)) == 600_000


def test_damaged_files_of_control_groups_are_passed_over(tmp_path: Path) -> None:
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
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "0.0001", "4XB", "1e9", "nan", "inf", "4 GB GB", "3i", "٣GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size of memory: write a number above 0"):
        parse_size(text)


def test_the_table_ends_with_the_total_and_starts_with_the_largest_part() -> None:
    need = estimate(LARGE, Config())
    rows = memory.table(need)
    assert rows[-1] == ("total", memory.size_for_people(need.total))
    assert rows[0][0] == max(need.parts, key=lambda name: need.parts[name])
    assert len(rows) == len(memory.PARTS) + 1


def test_labels_without_documents_are_not_in_the_index() -> None:
    few, all_of_them = (estimate(replace(LARGE, known=known), Config()).parts["index"] for known in (1_000, 100_000))
    assert few < all_of_them
    assert estimate(LARGE, Config()).parts["index"] == all_of_them


def test_a_size_without_its_unit_is_asked_about() -> None:
    with pytest.raises(ValueError, match="'4' would be bytes: write the unit as well, such as 4GB"):
        parse_size("4")
