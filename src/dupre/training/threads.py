"""How many threads BLAS and OpenMP use.

Looking for their libraries takes milliseconds, more than a small training: they are looked for
again only after something was imported, which may have loaded another one.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


def limit_threads(threads: int, *, user_api: str | None = None) -> Any:
    """A context in which the libraries that are loaded now use this many threads."""
    return _find_libraries(frozenset(sys.modules)).limit(limits=threads, user_api=user_api)


@lru_cache(maxsize=1)
def _find_libraries(_: frozenset[str]) -> ThreadpoolController:
    return ThreadpoolController()
