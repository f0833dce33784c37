"""Blocks on several threads: what is found is the same to the last bit, whatever their number."""

import threading

import pytest

import dupre
from dupre.game import blocks
from owners_and_games import evaluate, make_owners, smooth


@pytest.fixture(params=["1", "2", "5"])
def threads(request, monkeypatch):
    monkeypatch.setattr(blocks, "_count_cores", lambda _: int(request.param))
    monkeypatch.setattr(blocks, "WORTHWHILE", 0.0)
    return int(request.param)


def test_blocks_come_in_order_the_first_here_and_within_threads_there_are_no_more(
    threads, monkeypatch
):
    used, before = set(), threading.active_count()

    def compute(block: slice) -> list[int]:
        inner = list(blocks.compute_blocks(lambda _: threading.get_ident(), range(4)))
        used.add(threading.get_ident())
        assert block.start == 0 or set(inner) == {threading.get_ident()}
        return list(range(100))[block]

    found = list(blocks.compute_blocks(compute, blocks.split(100, 7)))
    assert [i for block in found for i in block] == list(range(100))
    assert (threads > 1) <= len(used - {threading.get_ident()}) <= threads
    assert threading.active_count() == before
    monkeypatch.setattr(blocks, "WORTHWHILE", 60.0)
    here = {threading.get_ident()}
    assert set(blocks.compute_blocks(lambda _: threading.get_ident(), range(9))) == here


def test_an_error_ends_all_blocks_and_reaches_the_caller(threads):
    begun = []

    def compute(block: slice) -> None:
        begun.append(block)
        if block.start == 3:
            raise KeyError("the fourth block")

    with pytest.raises(KeyError, match="fourth"):
        list(blocks.compute_blocks(compute, blocks.split(1_000, 1)))
    assert len(begun) < 100


@pytest.mark.parametrize(("limit", "expected"), [("1", 1), ("0", 1), ("", 2), ("4,2", 2), ("9", 2)])
def test_openmp_is_asked_for_its_limit(limit, expected, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    assert blocks._count_cores.__wrapped__(limit) == expected


@pytest.mark.slow
def test_picks_and_values_are_the_same_to_the_last_bit(monkeypatch):
    owners, found = make_owners(13), []
    monkeypatch.setattr(blocks, "WORTHWHILE", 0.0)
    for cores in (1, 3):
        monkeypatch.setattr(blocks, "_count_cores", lambda _, cores=cores: cores)
        valuer = dupre.Valuer(owners, empty=0.0, seed=0)
        evaluate(valuer, smooth(owners), 60)
        valuation = valuer.interim_values()
        found.append(
            (valuer.suggest(5), valuation.mean.tolist(), valuation.uncertainty.total.tolist())
        )
    assert found[0] == found[1]
