"""How the tests start Ray."""

from __future__ import annotations

import os

# Ray starts its workers with the least priority, and they would wait for all other tests.
os.environ.setdefault("RAY_worker_niceness", "0")
