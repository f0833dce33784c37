import signal

import hypothesis
import pytest
import threadpoolctl

from clusters import dask_cluster
from commands import NO_FIGURES
from dupre.predictor import form
from dupre.report import page
from stores import fresh_path

# How long an example takes says something about the machine, not about dupre. The examples are the
# same in every run, so that a change is judged by what it changes; other examples are tried by
# `pytest --hypothesis-profile random`.
_ANY_MACHINE = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("random", _ANY_MACHINE)
hypothesis.settings.register_profile("repeatable", _ANY_MACHINE, derandomize=True)
hypothesis.settings.load_profile("repeatable")

# A process in the background ignores Ctrl-C, and so would all processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def one_thread_for_small_matrices():
    with threadpoolctl.threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="session", autouse=True)
def state_of_its_own(tmp_path_factory):
    """What the command remembers of this user does not matter, and stays as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


CHOICES, OTHERS = form.CHOICES, form.OTHERS
DRAW = page.draw_figure


@pytest.fixture(scope="session", autouse=True)
def quick():
    """One form of the predictor and no figures: searching forms and drawing take time.

    For the whole session, since runs are shared by modules; a module's own wishes come after it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "CHOICES", {})
        patch.setattr(form, "OTHERS", ())
        patch.setattr(*NO_FIGURES)
        yield


@pytest.fixture(scope="module", autouse=True)
def wishes_of_the_module(request):
    """All forms of the predictor where a module states ALL_FORMS, figures where FIGURES."""
    with pytest.MonkeyPatch.context() as patch:
        if getattr(request.module, "ALL_FORMS", False):
            patch.setattr(form, "CHOICES", CHOICES)
            patch.setattr(form, "OTHERS", OTHERS)
        if getattr(request.module, "FIGURES", False):
            patch.setattr(page, "draw_figure", DRAW)
        yield


@pytest.fixture
def all_forms(monkeypatch):
    """The predictor as it is, for tests of it in a whole run."""
    monkeypatch.setattr(form, "CHOICES", CHOICES)
    monkeypatch.setattr(form, "OTHERS", OTHERS)


@pytest.fixture
def path():
    """Of a store, where waiting for the disk takes no time."""
    with fresh_path() as path:
        yield path


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The client and the worker processes of a Dask cluster; no test may kill them."""
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path_factory.mktemp("dask")) as (client, workers):
        yield client, workers


@pytest.fixture
def cluster_to_kill(tmp_path):
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path / "cluster") as (client, workers):
        yield client, workers
