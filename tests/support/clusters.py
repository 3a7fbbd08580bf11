"""Ray clusters of several nodes on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The least that Ray allows.
STORE_BYTES = 80_000_000


class Nodes:
    """A cluster on this machine whose nodes have one processor each; this process is connected to it."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self._others: list[Any] = []

    @property
    def address(self) -> str:
        """Where the cluster is."""
        return str(self.cluster.address)

    def resize(self, n: int) -> None:
        """Have this many nodes; the first one, where the driver is, stays."""
        while len(self._others) + 1 > n:
            self.cluster.remove_node(self._others.pop(), allow_graceful=False)
        while len(self._others) + 1 < n:
            self._others.append(self.cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES))
        self.cluster.wait_for_nodes()

    def kill_one(self) -> None:
        """End a node that is not the first one, with all of its processes."""
        self.cluster.remove_node(self._others.pop(), allow_graceful=False)


@contextmanager
def nodes() -> Iterator[Nodes]:
    """Start a cluster of one node inside the `with` block."""
    import ray
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    arguments = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=arguments)
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield Nodes(cluster)
    finally:
        ray.shutdown()
        cluster.shutdown()
