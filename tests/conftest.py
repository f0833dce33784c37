from __future__ import annotations

import hypothesis
import pytest
from threadpoolctl import threadpool_limits

# How long an example takes says something about the machine, not about dupre.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def one_thread_for_small_matrices():
    with threadpool_limits(limits=1):
        yield
