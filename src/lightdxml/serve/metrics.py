"""Prometheus metrics: requests, latencies, batch sizes, queue, model versions and lessons."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from lightdxml import __version__
from lightdxml.serve.batching import Batcher
from lightdxml.serve.registry import ModelRegistry

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 24, 32)


class Metrics:
    """The metrics of one server, in their own registry.

    Parameters
    ----------
    models
        The served models.
    """

    def __init__(self, models: ModelRegistry) -> None:
        self.registry = CollectorRegistry()
        self._served = models
        self._batcher: Batcher | None = None
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        names = ("method", "route", "status")
        self._requests = Counter(
            "lightdxml_requests", "Requests by method, route and status.", names, registry=self.registry
        )
        self._seconds = Histogram(
            "lightdxml_request_seconds", "Request latency.", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self.batch_size = Histogram(
            "lightdxml_batch_documents", "Documents per batch.", buckets=_SIZES, registry=self.registry
        )
        self._lessons = Counter("lightdxml_lessons", "Lessons by model.", ("model",), registry=self.registry)
        self._learned = Counter(
            "lightdxml_learned_documents", "Learned documents by model.", ("model",), registry=self.registry
        )
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def watch(self, batcher: Batcher) -> None:
        """Report the length of this queue."""
        self._batcher = batcher

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request."""
        key = method, route, status
        if key not in self._counted:
            self._counted[key] = self._requests.labels(method, route, str(status)), self._seconds.labels(route)
        counter, histogram = self._counted[key]
        counter.inc()
        histogram.observe(seconds)

    def count_lesson(self, model: str, documents: int) -> None:
        """Record a lesson."""
        self._lessons.labels(model).inc()
        self._learned.labels(model).inc(documents)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield gauges that are computed on each scrape."""
        if self._batcher is not None:
            waiting, capacity = float(self._batcher.waiting), float(self._batcher.capacity)
            yield GaugeMetricFamily("lightdxml_queue_documents", "Documents in the queue.", waiting)
            yield GaugeMetricFamily("lightdxml_queue_capacity", "Capacity of the queue.", capacity)
        yield GaugeMetricFamily("lightdxml_ready", "Whether all models are loaded.", float(self._served.ready))
        yield CounterMetricFamily("lightdxml_model_reloads", "Model reloads.", float(self._served.swaps))
        info = GaugeMetricFamily(
            "lightdxml_model_info", "Served models and their versions.", labels=("model", "version", "lightdxml")
        )
        for served in self._served if self._served.ready else ():
            info.add_metric((served.id, served.version, __version__), 1.0)
        yield info

    def text(self) -> bytes:
        """Return all metrics in Prometheus text format."""
        return generate_latest(self.registry)
