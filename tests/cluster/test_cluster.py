"""What all executors promise, and what happens when a cluster loses processes or machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

pytest.importorskip("ray", reason='needs ray: pip install "lightdxml[ray]"')

from lightdxml import LightDXML
from lightdxml.cluster import RayBackend
from lightdxml.cluster.executor import RayExecutor
from lightdxml.cluster.predict import call_in_actors
from lightdxml.data import Dataset
from lightdxml.executor import Executor, Threads, WorkersLostError
from lightdxml.training.callbacks import Callback
from lightdxml.training.run import Phase, Run
from tests.cluster.functions import end_process, failing, grow, new_part, row_of, scaled, slow, times, total_bytes
from tests.support.clusters import STORE_BYTES, Nodes, nodes
from tests.support.configs import FOUR_VIEWS, small
from tests.support.data import topics, words
from tests.support.trainings import bits, train

CONFIG = small(**{name.replace(".", "__"): value for name, value in FOUR_VIEWS.items()})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    with nodes() as found:
        found.resize(2)
        yield found


@pytest.fixture
def two_nodes(cluster: Nodes) -> Nodes:
    cluster.resize(2)
    return cluster


@pytest.fixture(params=["threads", "ray, one shard", "ray, two shards"])
def executor(request: pytest.FixtureRequest) -> Executor:
    if request.param == "threads":
        return Threads()
    request.getfixturevalue("two_nodes")
    return RayExecutor(shards=1 if "one" in request.param else 2)


def test_results_come_in_the_order_of_the_items(executor: Executor) -> None:
    factors = np.arange(20_000, dtype=np.float64)
    items = [7, 0, 19_999, 3]
    assert executor.map(scaled, factors, items) == [item**2 for item in items]
    assert executor.map(scaled, factors, []) == []


def test_each_result_is_reported_once_and_progress_reaches_the_end(executor: Executor) -> None:
    found: dict[int, float] = {}
    done: list[int] = []
    executor.map(scaled, np.ones(10), list(range(10)), found.__setitem__, done.append)
    assert found == {i: float(i) for i in range(10)}
    assert done == sorted(done)


def test_the_error_of_a_function_is_raised_as_it_is(executor: Executor) -> None:
    with pytest.raises(ValueError, match="item 3 cannot be done"):
        executor.map(failing, None, list(range(8)))


def test_progress_may_stop_the_work(executor: Executor) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executor.map(slow, None, list(range(10)), after=stop)
    assert executor.map(scaled, np.ones(10), [2]) == [2.0]


def test_parts_keep_what_calls_change_and_are_summed(executor: Executor) -> None:
    parts = executor.hold(new_part, np.arange(40, dtype=np.float64), [1, 2, 3, 30])
    assert parts.call(grow, 10) == [(11, 1), (12, 2), (13, 3), (40, 30)]
    assert parts.total(grow, 100) == (476, 36)
    parts.release()


def test_sums_of_parts_do_not_depend_on_where_they_are(two_nodes: Nodes) -> None:
    values = np.random.default_rng(0).random((8, 1000)).astype(np.float32)
    found = []
    for executor in (Threads(), RayExecutor(shards=2), RayExecutor(shards=4)):
        parts = executor.hold(row_of, values, list(range(8)))
        found.append(parts.total(times, np.float32(0.1))[0].tobytes())
        parts.release()
    assert found[0] == found[1] == found[2]


def test_a_process_that_ends_is_reported_as_lost(two_nodes: Nodes) -> None:
    parts = RayExecutor(shards=2).hold(new_part, np.arange(4.0), [0, 1, 2, 3])
    with pytest.raises(WorkersLostError, match="a process of the cluster was lost"):
        parts.total(end_process, 2)
    parts.release()


def test_a_task_that_always_ends_its_process_does_not_run_forever(
    two_nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lightdxml.cluster.executor.RETRIES", 1)
    with pytest.raises(ConnectionError, match=r"a process of the cluster was lost .*, 2 times by the same task"):
        RayExecutor().map(end_process, [1], [1])


def test_arrays_that_do_not_fit_into_the_object_store_are_spilled(two_nodes: Nodes) -> None:
    executor = RayExecutor()
    arrays = [np.full(STORE_BYTES // 3, i, dtype=np.uint8) for i in range(5)]
    assert executor.map(total_bytes, arrays[:1], [0]) == [0]
    # Together they take more than the store of a node has. Each is used once more after all were sent.
    found = [executor.map(total_bytes, [array], [0, 1])[0] for array in (*arrays, *arrays)]
    assert found == [0, 1, 2, 3, 4] * 2


# Ray Data warns of its own settings.
@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_a_worker_of_a_prediction_needs_a_machine_with_enough_processors(two_nodes: Nodes) -> None:
    with pytest.raises(ValueError, match="no machine of the cluster can have 2 free processors"):
        next(call_in_actors(two_nodes.address, lambda: print, [1], cpus=2))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_model_has_the_same_bits_on_any_number_of_nodes(cluster: Nodes, n: int, expected: dict[str, Any]) -> None:
    cluster.resize(n)
    model, _ = train(topics(), CONFIG, executor=RayExecutor())
    assert bits(model) == expected


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return bits(train(topics(), CONFIG)[0])


class AtPhase(Callback):
    """Does something once, when a phase makes progress."""

    def __init__(self, phase: str, action: Callable[[], object]) -> None:
        self.phase, self.action, self.is_done = phase, action, False

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        if phase.name == self.phase and not self.is_done:
            self.is_done = True
            self.action()


# `python -m tests.faults` does it in every phase.
@pytest.mark.parametrize(("phase", "keep"), [("classifier", True), ("shortlist", False), ("label tree", False)])
def test_a_node_that_dies_changes_no_bit(
    two_nodes: Nodes, phase: str, keep: bool, expected: dict[str, Any], tmp_path: Path
) -> None:
    killer = AtPhase(phase, two_nodes.kill_one)
    checkpoint = tmp_path / "checkpoint" if keep else None
    model, _ = train(topics(), CONFIG, checkpoint, [killer], executor=RayExecutor())
    assert killer.is_done
    assert bits(model) == expected


def test_texts_of_real_data_give_the_same_files(two_nodes: Nodes, see_also: Dataset, tmp_path: Path) -> None:
    written = []
    for backend in (None, RayBackend(two_nodes.address)):
        model = LightDXML(epochs=2, dense="always", random_state=1, options={"linear.work": 0})
        model.fit(see_also.train.texts, see_also.train.Y, backend=backend)
        folder = tmp_path / type(backend).__name__
        model.save(folder)
        files = sorted(path for path in folder.iterdir() if path.name not in ("history.json", "manifest.json"))
        written.append({path.name: path.read_bytes() for path in files})
    assert written[0] == written[1]


def test_names_of_labels_and_words_go_to_the_cluster(two_nodes: Nodes) -> None:
    X, Y = topics()
    found = []
    for backend in (None, RayBackend(two_nodes.address)):
        model = LightDXML(options=FOUR_VIEWS)
        model.fit(X, Y, label_names=words(Y.shape[1]), feature_names=words(X.shape[1]), backend=backend)
        found.append(bits(model.model_))
    assert found[0] == found[1]


def test_the_number_of_shards_must_be_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="shards is 6: it must be a power of two, such as 1, 2, 4 or 8"):
        RayExecutor(6)


def test_training_gives_up_when_processes_are_lost_again_and_again(
    documents: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lightdxml.training.fit._PAUSE", 0)

    class Losing(Threads):
        def hold(self, *_: Any) -> Any:
            raise WorkersLostError("a process of the cluster was lost (test)")

    with pytest.raises(WorkersLostError, match="11 times: look at the memory"):
        train(documents, small(epochs=1), executor=Losing())
