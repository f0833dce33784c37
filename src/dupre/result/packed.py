"""Matrices and coalitions of many owners as short texts, for a document that stays small.

Written as lists, the matrices of 300 owners are 10 MB of digits, and the names of coalitions are
2 MB. A matrix is therefore the base64 text of its 64-bit numbers, least significant byte first,
compressed by zlib: no digit is lost. If it is symmetric its lower triangle is written, row by row,
otherwise all of it. A coalition is a hexadecimal number, "0x5" for the first and the third owner:
bit i stands for owner i in the order of the document.
"""

from __future__ import annotations

import binascii
import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dupre._types import Floats

_NUMBER = np.dtype("<f8")


def pack_matrix(matrix: Floats) -> str:
    """The text of a matrix, (n, n)."""
    symmetric = np.array_equal(matrix, matrix.T, equal_nan=True)
    numbers = matrix[np.tril_indices(len(matrix))] if symmetric else matrix
    return b64encode(zlib.compress(numbers.astype(_NUMBER).tobytes(), 9)).decode()


def unpack_matrix(text: str, n: int) -> Floats | None:
    """The matrix, (n, n), of a text; None if it is not that of one."""
    unpacker = zlib.decompressobj()
    try:  # a damaged text must not fill the memory
        content = unpacker.decompress(b64decode(text, validate=True), n * n * _NUMBER.itemsize + 1)
    except (binascii.Error, ValueError, zlib.error):
        return None
    triangle = n * (n + 1) // 2
    if not unpacker.eof or len(content) not in (8 * triangle, 8 * n * n):
        return None
    numbers = np.frombuffer(content, dtype=_NUMBER).astype(np.float64)
    if len(numbers) == n * n:
        return numbers.reshape(n, n)
    found = np.empty((n, n))
    found[np.tril_indices(n)] = numbers
    found.T[np.tril_indices(n)] = numbers
    return found


def pack_coalitions(cells: Iterable[Any], owners: Sequence[str]) -> list[Any]:
    """The texts of coalitions, each given by names or by the JSON text of their list.

    One that could not be read back to the last character stays as it is.
    """
    position = {name: i for i, name in enumerate(owners)}
    packed = []
    for cell in cells:
        as_text = isinstance(cell, str)
        members = json.loads(cell) if as_text else cell
        text = hex(sum(1 << position.get(name, len(owners)) for name in members))
        again = unpack_coalition(text, owners, as_text=as_text)
        packed.append(text if again == (cell if as_text else list(cell)) else cell)
    return packed


def unpack_coalition(cell: Any, owners: Sequence[str], *, as_text: bool) -> Any:
    """The names in a packed coalition, as a list or its JSON text; anything else as it is."""
    if not isinstance(cell, str) or not re.fullmatch("0x[0-9a-f]+", cell):
        return cell
    if len(cell) - 2 > len(owners) // 4 + 1 or (code := int(cell, 16)) >> len(owners):
        return cell  # not of these owners
    names = [name for i, name in enumerate(owners) if code >> i & 1]
    return json.dumps(sorted(names), ensure_ascii=False) if as_text else names
