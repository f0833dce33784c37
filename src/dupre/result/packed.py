"""Matrices and coalitions of many owners as short texts, for a document that stays small.

Written as lists, the matrices of 300 owners are 10 MB of digits, and the names of coalitions are
2 MB. A matrix is therefore the base64 text of its 64-bit numbers, least significant byte first,
compressed by zlib: no digit is lost. If it is symmetric its lower triangle is written, row by row,
otherwise all of it. A list of numbers, as of scores on resamples, is packed in the same way. A
coalition is a hexadecimal number, "0x5" for the first and the third owner: bit i stands for owner i
in the order of the document.
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
from dupre.wording import json_numbers

_NUMBER = np.dtype("<f8")

MOST_IN_A_LIST = 2**20
"""Numbers that a packed list may have: a damaged text must not fill the memory."""


def pack_matrix(matrix: Floats) -> str:
    """The text of a matrix, (n, n)."""
    symmetric = np.array_equal(matrix, matrix.T, equal_nan=True)
    return _pack(matrix[np.tril_indices(len(matrix))] if symmetric else matrix)


def unpack_matrix(text: str, n: int) -> Floats | None:
    """The matrix, (n, n), of a text; None if it is not that of one."""
    numbers = _unpack(text, n * n)
    if numbers is None or len(numbers) not in (n * (n + 1) // 2, n * n):
        return None
    if len(numbers) == n * n:
        return numbers.reshape(n, n)
    found = np.empty((n, n))
    found[np.tril_indices(n)] = numbers
    found.T[np.tril_indices(n)] = numbers
    return found


def _pack(numbers: Floats) -> str:
    return b64encode(zlib.compress(numbers.astype(_NUMBER).tobytes(), 9)).decode()


def _unpack(text: str, most: int) -> Floats | None:
    """Up to `most` numbers in a text; None if it is damaged or has more."""
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(b64decode(text, validate=True), most * _NUMBER.itemsize + 1)
    except (binascii.Error, ValueError, zlib.error):
        return None
    if not unpacker.eof or len(content) % _NUMBER.itemsize:
        return None
    return np.frombuffer(content, dtype=_NUMBER).astype(np.float64)


def pack_list(cell: Any) -> Any:
    """The text of a list, given by its JSON text of numbers and nulls; anything else as it is."""
    if not isinstance(cell, str):
        return cell
    return _pack(np.array([np.nan if x is None else x for x in json.loads(cell)], dtype=np.float64))


def unpack_list(cell: Any) -> Any:
    """The JSON text of a packed list; anything else as it is."""
    if not isinstance(cell, str) or cell.startswith("["):
        return cell
    numbers = _unpack(cell, MOST_IN_A_LIST)
    return cell if numbers is None else json_numbers(numbers.tolist())


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
