import json
import zlib
from base64 import b64decode, b64encode

import numpy as np
import pytest

from dupre.result.packed import (
    pack_coalitions,
    pack_list,
    pack_matrix,
    unpack_coalition,
    unpack_list,
    unpack_matrix,
)

OWNERS = ["b", "a", "é", "c d", '"']


def a_matrix(n=4):
    return np.random.default_rng(0).normal(size=(n, n))


@pytest.mark.parametrize(
    "matrix",
    [a_matrix(), a_matrix() + a_matrix().T, np.zeros((3, 3)), np.full((3, 3), np.nan), np.eye(1)],
    ids=["any", "symmetric", "zero", "unknown", "one"],
)
def test_a_matrix_is_read_as_it_was_written(matrix):
    np.testing.assert_array_equal(unpack_matrix(pack_matrix(matrix), len(matrix)), matrix)


def test_a_symmetric_matrix_is_its_lower_triangle_in_64_bits():
    matrix = a_matrix() + a_matrix().T
    numbers = np.frombuffer(zlib.decompress(b64decode(pack_matrix(matrix))), dtype="<f8")
    assert numbers.tolist() == [matrix[i, j] for i in range(4) for j in range(i + 1)]
    numbers = np.frombuffer(zlib.decompress(b64decode(pack_matrix(a_matrix()))), dtype="<f8")
    assert numbers.tolist() == a_matrix().ravel().tolist()


def test_what_is_no_matrix_is_none():
    good = pack_matrix(a_matrix())
    too_much = b64encode(zlib.compress(bytes(10**7))).decode()
    for text in ("", "x", "é", good[:-8], "AAAA" + good, b64encode(b"x" * 9).decode(), too_much):
        assert unpack_matrix(text, 4) is None
    assert unpack_matrix(good, 5) is None


def test_a_coalition_is_a_number_whose_bits_are_its_owners():
    cells = [("b", "é"), ("a",), tuple(OWNERS), ()]
    assert pack_coalitions(cells, OWNERS) == ["0x5", "0x2", "0x1f", "0x0"]
    for cell, text in zip(cells, pack_coalitions(cells, OWNERS), strict=True):
        assert unpack_coalition(text, OWNERS, as_text=False) == list(cell)
    texts = [json.dumps(sorted(cell), ensure_ascii=False) for cell in cells]
    assert pack_coalitions(texts, OWNERS) == ["0x5", "0x2", "0x1f", "0x0"]
    assert unpack_coalition("0x5", OWNERS, as_text=True) == '["b", "é"]'


def test_coalitions_that_could_not_be_read_back_stay_as_they_are():
    cells = [("a", "b"), ("x",), ("a", "a"), '["b","a"]', '["x"]']
    assert pack_coalitions(cells, OWNERS) == cells


def test_what_is_no_packed_coalition_stays_as_it_is():
    for cell in (None, 5, ["a"], "a", "0x", "0xg", "0x20", "-0x1", "0x" + "f" * 9999, "0x1_0"):
        assert unpack_coalition(cell, OWNERS, as_text=True) == cell


def test_a_list_of_numbers_is_read_as_it_was_written_and_short():
    cell = json.dumps([k / 899 for k in range(200)] + [None, -0.0, 1e-300], separators=(",", ":"))
    packed = pack_list(cell)
    assert unpack_list(packed) == cell
    assert len(packed) < len(cell)
    for other in (None, "[0.5]", "damaged", packed[:-8]):
        assert unpack_list(other) == other
