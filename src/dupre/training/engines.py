"""Temporary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from dupre.errors import InputError
from dupre.training.process import ProcessSettings
from dupre.training.workers import Workers, start_workers


@runtime_checkable
class Engine(Protocol):
    """x"""

    on_error: str

    def start(self, utility: Any) -> Workers: ...


@dataclass(frozen=True)
class Local:
    """x"""

    jobs: int = 1
    threads: int = 1
    timeout: float | None = None
    retries: int = 2
    on_error: str = "raise"

    def __post_init__(self):
        if self.jobs == 0 or isinstance(self.jobs, bool) or not isinstance(self.jobs, int):
            raise InputError(
                f"jobs must be a number of processes, or -1 for all, got {self.jobs!r}"
            )

    def start(self, utility):
        return start_workers(
            utility,
            ProcessSettings(self.threads, self.timeout, self.retries),
            n_jobs=self.jobs,
            client=None,
        )


@dataclass(frozen=True)
class Dask:
    """x"""

    client: Any
    threads: int = 1
    timeout: float | None = None
    retries: int = 2
    on_error: str = "raise"

    def start(self, utility):
        return start_workers(
            utility,
            ProcessSettings(self.threads, self.timeout, self.retries),
            n_jobs=1,
            client=self.client,
        )
