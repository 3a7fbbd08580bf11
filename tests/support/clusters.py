"""Ray clusters of several nodes on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The least that Ray allows.
STORE_BYTES = 80_000_000


class Nodes:
    """A cluster on this machine whose nodes have one processor each; this process is connected to it."""

    def __init__(self, cluster: Any, arguments: dict[str, Any]) -> None:
        self.cluster, self._arguments = cluster, arguments
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
            self._others.append(self.cluster.add_node(**self._arguments))
        self.cluster.wait_for_nodes()

    def kill_one(self) -> None:
        """End a node that is not the first one, with all of its processes."""
        self.cluster.remove_node(self._others.pop(), allow_graceful=False)


@contextmanager
def nodes(spill: Path | None = None, system: dict[str, Any] | None = None) -> Iterator[Nodes]:
    """Start a cluster of one node inside the `with` block.

    `spill` is a folder for objects that do not fit into the object stores, and `system` has settings of Ray itself.
    """
    import ray
    from ray.cluster_utils import Cluster

    from lightdxml.cluster.connection import sigterm_handler_restored

    logging.getLogger("ray").setLevel(logging.ERROR)
    arguments: dict[str, Any] = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    if spill is not None:
        arguments["object_spilling_directory"] = str(spill)
    head = arguments | {"include_dashboard": False, "_system_config": system}
    with sigterm_handler_restored():
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
            yield Nodes(cluster, arguments)
        finally:
            ray.shutdown()
            cluster.shutdown()
