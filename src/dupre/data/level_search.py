"""Where rising whole numbers pass each of the levels 0, 1, 2, ...: many searches at a time.

A quantile needs the first of T thresholds that has reached its level. A histogram of what the
thresholds have reached would read them one by one. Here as many as fit into a 64-bit word are
compared with a level at once: first the last ones of all words, then those of the word in which
the level is passed.

Notation: r rows of T rising numbers, K levels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dupre._types import Ints


def pass_levels(reached: NDArray[np.unsignedinteger], levels: int) -> Ints:
    """How many numbers of each row do not exceed each level, (r, K).

    Args:
        reached: rising within a row, (r, T), and K at its end, of the `type_up_to` K.
        levels: K.
    """
    bits = 8 * reached.itemsize
    count = 64 // bits  # numbers in a word
    ones, top = np.uint64(sum(1 << bits * i for i in range(count))), np.uint64(1 << bits - 1)
    # The highest bit of level + top - number is set if the number does not exceed the level.
    marks, tops = (np.arange(levels, dtype=np.uint64) + top) * ones, top * ones
    words = [_words(reached, levels)]
    while (numbers := words[-1].view(reached.dtype)).shape[1] > count:
        words.append(_words(numbers[:, count - 1 :: count], levels))
    row = np.arange(len(reached))[:, None]
    found = np.zeros((len(reached), levels), dtype=np.int64)
    for some in reversed(words):
        below = np.subtract(marks, some.ravel().take(found + row * some.shape[1]))
        below &= tops
        found *= count
        found += np.bitwise_count(below)
    return found


def type_up_to(levels: int) -> np.dtype[np.unsignedinteger]:
    """The smallest type of numbers up to K that leaves their highest bit free."""
    return np.dtype(np.min_scalar_type(2 * levels + 1))


def _words(numbers: NDArray[np.unsignedinteger], levels: int) -> NDArray[np.uint64]:
    """The numbers of each row, (r, T), in 64-bit words; rows are filled up with K."""
    if missing := -numbers.shape[1] % (8 // numbers.itemsize):
        filling = np.full((len(numbers), missing), levels, dtype=numbers.dtype)
        numbers = np.concatenate([numbers, filling], axis=1)
    return np.ascontiguousarray(numbers).view(np.uint64)
