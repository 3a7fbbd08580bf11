"""What training will need of the machine's memory, said before it begins, and what to change where it is too much.

Training holds some arrays all the time and others for a moment. `_moments` lists the moments at which it holds most, in
the order in which they come, with every array of a size that matters; the largest is the peak. What is said here about
`fit`, `cycle` and the files of the steps must change with them: `benchmarks/memory.py` measures whether it holds.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from lightdxml.comparison import ROOM, with_reserve
from lightdxml.config import Config
from lightdxml.inverted_file import CHUNK
from lightdxml.k_means import SAMPLE, cluster_count
from lightdxml.kernels import parallel
from lightdxml.kernels.int8 import AVAILABLE, padded
from lightdxml.kernels.rabitq import width_of
from lightdxml.model import FOUND_BY_WORDS
from lightdxml.shortlist import Kind, kind_for, sub_linear, worth_trying
from lightdxml.sketches import room_to_search
from lightdxml.training import label_tree
from lightdxml.training.plan import validation_size

PARTS = (
    "features", "weights", "optimiser", "best model", "shortlists", "index", "embeddings", "validation", "batches",
    "sparse view", "program",
)  # fmt: skip
# The interpreter with what training imports, before and after the kernels are loaded, and what BLAS keeps.
_IMPORTED, _PROGRAM = 140_000_000, 205_000_000
_FLOAT, _HALF, _WHOLE, _LONG = 4, 2, 4, 8
_ENTRY = _FLOAT + _WHOLE
# As in `classifier`, `cycle` and `shortlist`.
_GRADIENTS, _SEARCHED, _QUERIES, _LINKS = 8, 8192, 1024, 32
# The bytes that a weight of the sparse view takes at the most.
_INVERTED = 36
# Weights of label trees for one of the sparse view's, from what three trees kept of debian-relations.
_TREES = 1.4
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_D_LADDER = (512, 384, 300, 256, 192, 128, 96, 64, 48, 32)
_K_LADDER = (1000, 750, 600, 500, 400, 300, 250, 200, 150, 100, 70, 50, 30, 20)
# What halving a setting costs in accuracy or time, D's being 3: the model itself, its candidates, how it is trained.
_HARM = {"D": 3.0, "k": 1.0, "batch_size": 0.5, "random_negatives": 0.5, "sparse_negatives": 2.0}
_HARM_OF_OTHER = {"index": 0.5, "learn_validation": 1.0, "label_tree": 1.0, "sparse": 6.0}


class MemoryLimitError(ValueError):
    """Training that needs more memory than there is, said in one sentence with what to change."""


@dataclass(frozen=True)
class Estimate:
    """What training needs when it needs most.

    Attributes
    ----------
    parts
        Bytes at that moment, by what they are for.

    Examples
    --------
    >>> Estimate({"weights": 3_000_000, "program": 200_000_000}).total
    203000000
    """

    parts: dict[str, int]

    @property
    def total(self) -> int:
        """The peak, in bytes."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Sizes:
    """How large the data of a training is, and what of it stays in memory.

    Attributes
    ----------
    documents, features, labels
        The shape of X and Y as they are given to `fit`.
    entries, pairs
        The numbers stored in X and in Y.
    validation
        The documents of the dev part; None where there is none and a slice is set aside.
    known
        How many labels have documents; None for as many as can.
    given_stays
        Whether the matrices as given are in memory all the while.
    scratch
        Whether the features that are trained on, and shortlists, live in files.

    Examples
    --------
    >>> Sizes(50_000, 200_000, 4_000, 10_000_000, 250_000).n_known
    4000
    """

    documents: int
    features: int
    labels: int
    entries: int
    pairs: int
    validation: int | None = None
    known: int | None = None
    given_stays: bool = True
    scratch: bool = False

    @property
    def n_known(self) -> int:
        """How many labels have documents, at most."""
        return min(self.labels, self.pairs) if self.known is None else self.known

    def set_aside(self, config: Config) -> int:
        """Return how many of the given documents are not trained on."""
        return validation_size(self.documents, config) if self.validation is None else 0

    def deciding(self, config: Config) -> int:
        """Return how many documents there are to decide; 0 where those do that are trained on."""
        return self.set_aside(config) if self.validation is None else self.validation

    def features_of(self, documents: int) -> int:
        """Return the bytes of the columns and values of X of so many documents."""
        return round(_ENTRY * self.entries * documents / max(1, self.documents))

    def matrices(self, documents: int) -> int:
        """Return the bytes of X and Y of so many documents."""
        labels = round(_ENTRY * self.pairs * documents / max(1, self.documents))
        return self.features_of(documents) + labels + 2 * _WHOLE * (documents + 1)


def estimate(sizes: Sizes, config: Config) -> Estimate:
    """Return what training on matrices of these sizes needs, the program and the matrices themselves included.

    Examples
    --------
    >>> need = estimate(Sizes(50_000, 200_000, 4_000, 10_000_000, 250_000), Config())
    >>> table(need)[-1]
    ('total', '1.1 GB')
    """
    parts = max(_moments(sizes, config).values(), key=lambda moment: sum(moment.values()))
    return Estimate({name: parts[name] for name in PARTS})


def _moments(sizes: Sizes, config: Config) -> dict[str, Counter[str]]:
    """Return what is held at the moments at which most is held, by part."""
    n, half = sizes.documents - sizes.set_aside(config), config.precision == "float16"
    kept = _HALF if half else _FLOAT
    words, classes = sizes.features * config.D, sizes.labels * (config.D + 1)
    label_vectors = _FLOAT * sizes.n_known * config.D
    embeddings = Counter({"embeddings": _FLOAT * n * config.D})
    centroids = Counter({"embeddings": _FLOAT * sizes.labels * config.D})
    shortlists = Counter({"shortlists": 0 if sizes.scratch else _WHOLE * n * min(config.k, sizes.n_known)})
    index = Counter({"index": _index(sizes, config)})
    start, best = _held_always(sizes, config), Counter({"best model": kept * (words + classes)})
    # Threads keep the room in which they searched.
    always = start + Counter({"shortlists": _search(sizes, config)})
    # To see whether float16 can hold an array, its absolute values are taken.
    absolute = max(_FLOAT * words, kept * words + _FLOAT * classes) if half else 0
    # An inverted file or sketches are the index, or are made beside an exact one to find shortlists by.
    making = Counter({"index": _making(sizes, config, _kind(sizes, config))})
    other = _beside(sizes, config)
    beside = Counter({"index": 0 if other is None else _making(sizes, config, other) + _made(sizes, config, other)})
    candidates = _candidates(sizes, config)
    # An exact index is made when it is first searched, from a copy in float32.
    exact = _kind(sizes, config) == "exact"
    widened = Counter({"index": label_vectors if exact and half else 0})
    refresh = always + best + index
    sparse = _sparse_moments(sizes, config, n)
    # After the last refresh shortlists are only as long as the sparse view needs them.
    near = Counter({"shortlists": 0 if sizes.scratch else _WHOLE * n * min(config.near_negatives, sizes.n_known)})
    # From the label embeddings on it is the second refresh: by then there is a best model with its index.
    return {
        "checks": _checks(sizes),
        "moving": _before_moving(sizes, config),
        "start": start + Counter({"weights": max(_FLOAT * words, 2 * _FLOAT * classes)}),
        "label embeddings": refresh + embeddings + centroids + Counter({"index": 3 * label_vectors}),
        "index": refresh + index + embeddings + centroids
        + Counter({"index": 0 if exact else (1 + half) * label_vectors}) + making,
        "search": refresh + index + embeddings + shortlists + beside + widened,
        "validation": refresh + index + shortlists + Counter({"validation": candidates}) + widened,
        "best model": always + index + shortlists
        + Counter({"best model": max(absolute, kept * (words + classes)), "validation": 3 * candidates // 8}),
        "epoch": refresh + shortlists + Counter({"batches": _batch(sizes, config)}),
        "bounds": refresh + shortlists + Counter({"weights": _FLOAT * classes}),
        **{name: refresh + near + moment for name, moment in sparse.items()},
    }  # fmt: skip


def _sparse_moments(sizes: Sizes, config: Config, n: int) -> dict[str, Counter[str]]:
    """Return what the sparse view takes while it is trained on n documents, and when its share is chosen."""
    if not config.sparse:
        return {}
    # Half of the negatives again are labels nearby; what is confused is held by document, and all of it by label.
    pairs = n * min(3 * config.sparse_negatives // 2, 2 * sizes.n_known)
    weights = _sparse_weights(sizes)
    columns = _n_candidates(sizes, config) + FOUND_BY_WORDS
    wider = columns / max(1, _n_candidates(sizes, config))
    view = (_HALF + _WHOLE) * weights + _LONG * sizes.features
    # What it takes to learn more documents: weights by label, labels nearby and labels that are confused.
    kept = _ENTRY * weights + _WHOLE * pairs
    grown = config.label_tree and label_tree.worth_trying(sizes.n_known, sizes.pairs)
    trees = round(_TREES * weights) if grown else 0
    # While shares are chosen there is one: its weights by node, and the tree itself.
    kept_tree = (_ENTRY + _HALF + _WHOLE) * trees // 3
    learns = config.learn_validation and sizes.set_aside(config) > 0
    everything = sizes.matrices(sizes.documents) if learns else 0
    # When shares are chosen, what each view says is held beside the candidates themselves.
    chosen = round(wider * _candidates(sizes, config)) + 3 * _FLOAT * (sizes.deciding(config) or n) * columns
    moments = {
        "words": Counter({"sparse view": _INVERTED * weights + 2 * _WHOLE * pairs + _ENTRY * sizes.pairs}),
        "sharing out": Counter({"sparse view": view + kept + kept_tree, "validation": chosen}),
    }
    if trees:
        held = view + _ENTRY * trees + 4 * _ENTRY * sizes.pairs + kept_tree
        held += max(_INVERTED * trees, 2 * _ENTRY * _centroids(sizes))
        moments["trees"] = Counter({"features": everything, "sparse view": held})
    if learns:
        held = view + kept + kept_tree + _INVERTED * weights + _WHOLE * pairs
        moments["set aside"] = Counter({"features": everything, "sparse view": held})
    return moments


def _centroids(sizes: Sizes) -> int:
    """Return about how many entries the centroids of labels have."""
    words, share = sizes.entries / max(1, sizes.documents), sizes.pairs / max(1, sizes.n_known)
    # A label's documents have words in common: fitted to four data sets, within half as much again.
    return round(sizes.n_known * words * math.pow(share, 0.6))


def _sparse_weights(sizes: Sizes) -> int:
    """Return about how many weights the sparse view keeps, from what it kept of six data sets.

    A label has more the more words its documents have, but not as many more: those that tell it come again.
    """
    words = sizes.pairs / max(1, sizes.n_known) * sizes.entries / max(1, sizes.documents)
    return round(sizes.n_known * min(sizes.features, 8 * math.sqrt(words)))


def _held_features(sizes: Sizes, config: Config) -> int:
    """Return the bytes of the matrices as given, as checked, which may be parted in two, and Yᵀ."""
    ours = sizes.matrices(sizes.documents)
    if sizes.validation is not None:
        ours += sizes.matrices(sizes.validation)
    small = _ENTRY * sizes.pairs + 3 * _LONG * sizes.labels
    moved = sizes.features_of(sizes.documents - sizes.set_aside(config)) if sizes.scratch else 0
    return (1 + sizes.given_stays) * ours + small - moved


def _before_moving(sizes: Sizes, config: Config) -> Counter[str]:
    """Return what is held right before features are moved to files, where they are."""
    return Counter({"features": _held_features(replace(sizes, scratch=False), config), "program": _PROGRAM})


def _checks(sizes: Sizes) -> Counter[str]:
    """Return what checking X takes: it, its copy, and three numbers of 64 bits an entry."""
    given = 2 * sizes.matrices(sizes.documents)
    return Counter({"features": given + 3 * _LONG * sizes.entries, "program": _IMPORTED})


def _held_always(sizes: Sizes, config: Config) -> Counter[str]:
    V, L, D = sizes.features, sizes.labels, config.D
    numbers = V * D + L * (D + 1)
    by_word = V * (2 * _WHOLE + _LONG)
    by_label = L * (2 * _WHOLE + 2 * _LONG)
    pairs = _pairs(sizes, config) * (3 * _FLOAT + _WHOLE + _LONG)
    gradients = _FLOAT * _GRADIENTS * min(config.batch_size, sizes.documents) * D
    return Counter({
        "features": _held_features(sizes, config),
        "weights": _FLOAT * numbers,
        "optimiser": _HALF * numbers + _FLOAT * (V + L),
        "batches": by_word + by_label + pairs + gradients,
        "program": _PROGRAM,
    })  # fmt: skip


def _pairs(sizes: Sizes, config: Config) -> int:
    """Return how many pairs of document and label a batch has."""
    each = _n_candidates(sizes, config) + config.random_negatives + sizes.pairs / max(1, sizes.documents)
    return round(min(config.batch_size, sizes.documents) * each)


def _n_candidates(sizes: Sizes, config: Config) -> int:
    return min(config.k, sizes.n_known) + min(config.frequent_labels, sizes.n_known)


def _batch(sizes: Sizes, config: Config) -> int:
    """Return what a batch takes for itself: embeddings, masks, gradients, its part of X inverted, and the order."""
    size = min(config.batch_size, sizes.documents)
    arrays = 10 if config.residual else 7
    words = size * sizes.entries // max(1, sizes.documents)
    return _FLOAT * arrays * size * config.D + (_ENTRY + _WHOLE + _LONG) * words + 2 * _LONG * sizes.documents


def _kind(sizes: Sizes, config: Config) -> Kind:
    return kind_for(config.index, sizes.n_known, config.D)


def _beside(sizes: Sizes, config: Config) -> Kind | None:
    """Return what index is tried for the training documents' shortlists besides the model's."""
    exact = config.index == "auto" and _kind(sizes, config) == "exact"
    return sub_linear(config.D) if exact and worth_trying(sizes.n_known, sizes.documents, config.D) else None


def _index(sizes: Sizes, config: Config) -> int:
    """Return the bytes of an index: label embeddings as the model keeps them and as they are searched, and links."""
    kept = _HALF if config.precision == "float16" else _FLOAT
    size = sizes.n_known * (config.D * kept + _WHOLE)
    if _kind(sizes, config) in ("sketch", "ivf"):
        return size + _made(sizes, config, _kind(sizes, config))
    size += _FLOAT * sizes.n_known * config.D
    if _kind(sizes, config) == "hnsw":
        # Twice the links on the lowest level, one label in so many on each one above; offsets, levels, locks.
        links = 2 * _LINKS + _LINKS / (_LINKS - 1)
        size += round(sizes.n_known * (_WHOLE * links + 2 * _LONG + _WHOLE))
    return size


def _made(sizes: Sizes, config: Config, kind: Kind) -> int:
    """Return the bytes of sketches or of an inverted file, with label embeddings as bytes; 0 for other kinds."""
    coded = padded(config.D) + _FLOAT + _WHOLE
    if kind == "sketch":
        return (coded + width_of(config.D) // 8 + _WHOLE) * sizes.n_known
    if kind == "ivf":
        each = 2 * _WHOLE + (coded if AVAILABLE else 0)
        return each * sizes.n_known + _FLOAT * config.D * cluster_count(sizes.n_known)
    return 0


def _making(sizes: Sizes, config: Config, kind: Kind) -> int:
    """Return what it takes to make sketches, the order of the labels, or clusters: a sample of them, centres, sums."""
    order = 3 * _LONG * sizes.n_known
    if kind == "ivf":
        clusters = cluster_count(sizes.n_known)
        # Taken out, as seen from the mean, and by group.
        sample = 3 * min(sizes.n_known, SAMPLE * clusters) + 3 * clusters
        return _FLOAT * config.D * sample + order
    return order if kind == "sketch" else 0


def _search(sizes: Sizes, config: Config) -> int:
    """Return what the threads need to search: found places and distances, and blocks of products."""
    k = min(config.k, sizes.n_known)
    # faiss keeps twice as many as it is asked for.
    found = _QUERIES * k * (2 * _LONG + 2 * _WHOLE + 2 * (_FLOAT + _LONG))
    busy = min(parallel.thread_count(), math.ceil(min(sizes.documents, _SEARCHED) / _QUERIES))
    exact = busy * (found + _FLOAT * _QUERIES * min(_QUERIES, sizes.n_known))
    kind = _beside(sizes, config) or _kind(sizes, config)
    if kind not in ("sketch", "ivf"):
        return exact
    # What may be among the best, as keys, with what tells their order; how near each cluster is, and which documents
    # are looked for in it, or tables and how near some labels seem.
    each = _LONG * (ROOM + 5) * with_reserve(k, sizes.n_known)
    if kind == "ivf":
        each += 2 * _FLOAT * cluster_count(sizes.n_known)
    else:
        each += room_to_search(sizes.n_known, config.D)
    at_once = min(parallel.thread_count(), math.ceil(min(sizes.documents, _SEARCHED) / CHUNK))
    return max(exact, at_once * CHUNK * each)


def _candidates(sizes: Sizes, config: Config) -> int:
    """Return what measuring takes: scores with the embeddings, or eight numbers a candidate when β is chosen."""
    documents = sizes.deciding(config) or sizes.documents
    each = _n_candidates(sizes, config)
    return _FLOAT * documents * max(6 * each + 2 * config.D, 8 * each)


def check(sizes: Sizes, config: Config, limit: int | None = None, *, others: int = 0) -> Estimate:
    """Return what training needs, or raise where that is more than `limit` bytes or, without it, than there are.

    What this process holds besides, `others`, is added. Against the machine's free memory counts only what this process
    does not hold already.

    Examples
    --------
    >>> check(Sizes(50_000, 200_000, 4_000, 10_000_000, 250_000), Config(), limit=800_000_000)
    Traceback (most recent call last):
    lightdxml.training.memory.MemoryLimitError: training needs 1.1 GB of memory and the limit is 800 MB: it would fit \
with D=96, learn_validation=False
    """
    need = Estimate({**estimate(sizes, config).parts, "texts and others": others})
    allowed = limit
    if allowed is None:
        free = free_memory()
        if free is None:
            return need
        allowed = free + (resident_memory() or 0)
    if need.total <= allowed:
        return need
    there = f"the limit is {size_for_people(allowed)}"
    if limit is None:
        there = f"this machine has {size_for_people(allowed)} for it"
    advice = _advice(settings_that_fit(sizes, config, allowed - others), sizes)
    raise MemoryLimitError(f"training needs {size_for_people(need.total)} of memory and {there}: {advice}")


def _advice(fits: dict[str, Any] | None, sizes: Sizes) -> str:
    if fits:
        return f"it would fit with {', '.join(f'{name}={value}' for name, value in fits.items())}"
    files = "" if sizes.scratch else "with a scratch folder for features and shortlists, or "
    return f"no k or D is small enough, so try it {files}with fewer features (max_features for texts) or documents"


def held_besides(resident: int, given: int) -> int:
    """Return how much of what a process holds the estimate does not count: texts mostly.

    Parameters
    ----------
    resident
        What it holds, kernels and all.
    given
        How much of that the matrices are that the estimate counts.
    """
    return max(0, resident - _PROGRAM - given)


def counted_of(given: Sequence[Any], checked: Sequence[csr_matrix]) -> int:
    """Return how many bytes of matrices as given the estimate counts: as many as they have as checked, and no more.

    One that is larger, as it is dense or of 64 bits, has the rest besides.

    >>> dense = np.eye(1000)
    >>> counted_of([dense], [csr_matrix(dense, dtype=np.float32)])
    12004
    """
    pairs = [(_bytes_of(one), _bytes_of(other)) for one, other in zip(given, checked, strict=True)]
    # Where nothing is known, as of lists, it is at least as much.
    return sum(min(size or counted, counted) for size, counted in pairs)


def _bytes_of(matrix: Any) -> int:
    """Return the bytes of a matrix, dense or sparse; 0 where that is unknown."""
    if issparse(matrix):
        arrays = [getattr(matrix, name, None) for name in ("data", "indices", "indptr", "row", "col")]
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
    return int(getattr(matrix, "nbytes", 0))


def settings_that_fit(sizes: Sizes, config: Config, limit: int) -> dict[str, Any] | None:
    """Return the least harmful changes with which training needs at most `limit` bytes; None if there are none.

    Nothing, an empty dict, where it fits as it is.

    Examples
    --------
    >>> settings_that_fit(Sizes(500_000, 10_000, 10_000, 10_000_000, 1_250_000), Config(index="exact"), 1_250_000_000)
    {'k': 150, 'sparse_negatives': 50}
    """
    for changes in _changes(sizes, config):
        if estimate(sizes, replace(config, **changes)).total <= limit:
            return changes
    return None


def _changes(sizes: Sizes, config: Config) -> list[dict[str, Any]]:
    """Return changes of settings that make training smaller, the least harmful first."""
    k = min(config.k, sizes.n_known)
    ladders: dict[str, list[Any]] = {
        "k": [config.k, *(step for step in _K_LADDER if step < k)],
        "D": [config.D, *(step for step in _D_LADDER if step < config.D)],
        "batch_size": [config.batch_size, *_halves(config.batch_size, 32)],
        "random_negatives": [config.random_negatives, *_halves(config.random_negatives, 25)],
        "sparse_negatives": [config.sparse_negatives, *(_halves(config.sparse_negatives, 25) if config.sparse else [])],
        "index": ["hnsw", "exact"] if _kind(sizes, config) == "hnsw" else [config.index],
        "learn_validation": [True, False] if config.learn_validation and config.sparse else [config.learn_validation],
        "label_tree": [True, False] if config.label_tree and config.sparse else [config.label_tree],
        "sparse": [True, False] if config.sparse else [False],
    }
    given = {name: ladder[0] for name, ladder in ladders.items()}
    found = []
    for values in itertools.product(*ladders.values()):
        changes = {name: value for name, value in zip(ladders, values, strict=True) if value != given[name]}
        harm = sum(_harm(name, min(given[name], k) if name == "k" else given[name], v) for name, v in changes.items())
        found.append((harm, changes))
    return [changes for _, changes in sorted(found, key=lambda pair: pair[0])]


def _halves(value: int, least: int) -> list[int]:
    return [value >> step for step in (1, 2, 3) if value >> step >= least]


def _harm(name: str, before: Any, after: Any) -> float:
    if name in _HARM_OF_OTHER:
        return _HARM_OF_OTHER[name]
    return _HARM[name] * math.log2(before / after)


def free_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process may still use, as Linux and its control groups tell; None where unknown."""
    known = [_available(root), *_left_in_groups(root)]
    return min((size for size in known if size is not None), default=None)


def resident_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process holds; None where unknown."""
    return _kilobytes(root / "proc/self/status", "VmRSS")


def _available(root: Path) -> int | None:
    return _kilobytes(root / "proc/meminfo", "MemAvailable")


def _kilobytes(path: Path, name: str) -> int | None:
    """Return what a line such as `VmRSS:  120 kB` says, in bytes."""
    found = re.search(rf"^{name}:\s*(\d+) kB$", _text(path), re.MULTILINE)
    return None if found is None else 1024 * int(found[1])


def _left_in_groups(root: Path) -> list[int | None]:
    """Return what is left in each control group that this process is in, of version 1 or 2, and in those above."""
    mount = root / "sys/fs/cgroup"
    left = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, kinds, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and kinds == "":
            where, names = mount, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in kinds.split(","):
            where, names = mount / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # In a container the path may be one outside of what is mounted there: then the mount's own files are there.
        group = Path(path.strip("/"))
        left += [_left(where / folder, *names) for folder in (group, *group.parents)]
    return left


def _left(folder: Path, limit: str, usage: str, reclaimable: str) -> int | None:
    most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
    if not most.isdecimal() or not used.isdecimal():
        return None
    # Pages of files that nobody has used lately count as used, but are given up at once.
    cached = re.search(rf"^{reclaimable} (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
    return max(0, int(most) - int(used) + (int(cached[1]) if cached else 0))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def parse_size(text: str) -> int:
    """Return the bytes that a size such as 4GB, 500 MB, 1.5g or 2GiB stands for.

    >>> parse_size("4GB"), parse_size("1.5g"), parse_size("1KiB"), parse_size("2000000")
    (4000000000, 1500000000, 1024, 2000000)
    >>> parse_size("much")
    Traceback (most recent call last):
    ValueError: 'much' is no size of memory: write a number above 0 with KB, MB, GB or TB, such as 4GB
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)(I?)B?", text.strip().upper())
    size = 0
    if found is not None and (found[2] or not found[3]):
        units = _BINARY_UNITS if found[3] else _UNITS
        size = round(float(found[1]) * units[found[2]])
    if size <= 0:
        raise ValueError(f"{text!r} is no size of memory: write a number above 0 with KB, MB, GB or TB, such as 4GB")
    if found is not None and not found[2] and size < _UNITS["M"]:
        raise ValueError(f"{text!r} would be bytes: write the unit as well, such as {text.strip()}GB")
    return size


def size_for_people(size: int) -> str:
    """Return a size in megabytes or gigabytes.

    >>> size_for_people(1_340_000_000), size_for_people(215_400_000)
    ('1.3 GB', '215 MB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 999_500_000 else f"{size / 1e6:,.0f} MB"


def table(need: Estimate) -> list[tuple[str, str]]:
    """Return what is needed for people to read: a row a part, the largest first, and the total.

    >>> table(Estimate({"weights": 3_000_000, "program": 200_000_000}))
    [('program', '200 MB'), ('weights', '3 MB'), ('total', '203 MB')]
    """
    rows = sorted(need.parts.items(), key=lambda part: -part[1])
    return [(name, size_for_people(size)) for name, size in [*rows, ("total", need.total)]]
