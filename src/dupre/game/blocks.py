"""A long array block by block, on all cores.

NumPy and BLAS let other threads run while they compute, so threads are enough. Their number changes
no bit: every block is computed as if it were alone, and what is found comes in the order of blocks.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

Block = TypeVar("Block")
Found = TypeVar("Found")

MOST_THREADS = 8
"""More wait for the interpreter more than they compute."""

WORTHWHILE = 0.02
"""Seconds of work below which threads cost more than they save."""

_this_thread = threading.local()


def split(count: int, step: int) -> list[slice]:
    """Slices of up to `step` of `count` entries."""
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def compute_blocks(compute: Callable[[Block], Found], blocks: Sequence[Block]) -> Iterator[Found]:
    """What is found in each block, in their order.

    The first one is computed by this thread, before all others: what blocks share and remember is
    then known, and its own blocks were computed on all cores. It also tells how long the others
    take. Within a thread of another call there are no further threads.
    """
    threads = min(_count_cores(os.environ.get("OMP_NUM_THREADS", "")), len(blocks) - 1)
    if threads < 2 or getattr(_this_thread, "is_busy", False):
        yield from map(compute, blocks)
        return
    start = time.perf_counter()
    first = compute(blocks[0])
    short = (time.perf_counter() - start) * (len(blocks) - 1) < WORTHWHILE
    yield first
    if short:
        yield from map(compute, blocks[1:])
        return
    waiting: deque[Future[Found]] = deque()
    with ThreadPoolExecutor(threads, initializer=_mark_as_busy) as pool:
        try:
            for block in blocks[1:]:
                waiting.append(pool.submit(compute, block))
                if len(waiting) > 2 * threads:  # what is found in all blocks may be large
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # after an error or an interrupt
            pool.shutdown(cancel_futures=True)


def fill_blocks(array: Any, compute: Callable[[Any], Any], blocks: Sequence[Any]) -> None:
    """Set array[block] to what is computed of each block: an index, or a tuple of them."""

    def fill(block: Any) -> None:
        array[block] = compute(block)

    for _ in compute_blocks(fill, blocks):
        pass


def _mark_as_busy() -> None:
    _this_thread.is_busy = True


@lru_cache(maxsize=1)
def _count_cores(threads: str) -> int:
    """Cores that this process may use, or as many threads as OpenMP is allowed if that is less."""
    from joblib import cpu_count  # knows the limits of containers

    cores = min(int(cpu_count()), MOST_THREADS)
    return min(cores, max(1, int(threads))) if threads.isdecimal() else cores
