"""How many threads BLAS and OpenMP use, and how soon a waiting thread of Python runs.

Finding these libraries takes milliseconds, more than a small training. So it is repeated only after
an import, which may have loaded another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

SWITCH_SECONDS = 5e-5
"""After this time a waiting thread asks for the interpreter; the default of Python is 0.005."""


@contextmanager
def switch_quickly() -> Iterator[None]:
    """Let threads that store evaluations run soon while the main thread computes.

    numpy releases the interpreter for moments too short for a waiting thread, and each of them
    makes it wait again: with Python's default, half a second was measured.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def limit_threads(threads: int, *, user_api: str | None = None) -> Any:
    """A context in which the libraries that are loaded now use this many threads."""
    return _find_libraries(frozenset(sys.modules)).limit(limits=threads, user_api=user_api)


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """A function that runs with one thread of BLAS.

    More only slow down many products of small matrices. Their number would change the order of
    additions too, and so the last digits.
    """

    @wraps(function)
    def run(*given: P.args, **named: P.kwargs) -> R:
        with limit_threads(1, user_api="blas"):
            return function(*given, **named)

    return run


@lru_cache(maxsize=1)
def _find_libraries(_: frozenset[str]) -> ThreadpoolController:
    return ThreadpoolController()
