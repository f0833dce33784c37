from __future__ import annotations

import sys
from functools import lru_cache

import pytest
import threadpoolctl


@pytest.fixture(scope="session", autouse=True)
def one_thread_for_small_matrices():
    with threadpoolctl.threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="session", autouse=True)
def libraries_looked_for_once():
    """Looking for BLAS libraries takes longer than a training of these tests."""
    real = threadpoolctl.ThreadpoolController
    find = lru_cache(maxsize=1)(lambda imported: real())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threadpoolctl, "ThreadpoolController", lambda: find(len(sys.modules)))
        yield
