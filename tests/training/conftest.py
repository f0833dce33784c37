import pytest

from clusters import dask_cluster
from stores import fresh_path


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
