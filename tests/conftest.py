from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_thread_for_small_matrices():
    with threadpool_limits(limits=1):
        yield
