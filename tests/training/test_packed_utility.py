import functools
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier

import dupre
from dupre.training.packed_utility import PackedUtility, pack
from workers import linux


@pytest.fixture
def travel(tmp_path, monkeypatch):
    """Pack a utility, write it to a file, and load it again."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda utility: load(pack(utility))


def load(packed):
    rows = packed.to_file()
    try:
        return PackedUtility.from_file(rows.path)
    finally:
        rows.delete()


def test_lambdas_closures_classes_arrays_and_settings_travel(travel, monkeypatch):
    base = np.arange(4.0)

    class Local:
        def __call__(self, members):
            return float(base.sum() + len(members))

    assert travel(Local())(("a",)) == 7.0
    assert travel(lambda members: base[2])(("a",)) == 2.0
    assert travel(functools.partial(lambda base, members: base.max(), base))(("a",)) == 3

    rng = np.random.default_rng(0)
    frozen = np.zeros(9)
    frozen.flags.writeable = False
    several = [
        frozen,
        rng.normal(size=(7, 3)),
        np.asfortranarray(rng.normal(size=(5, 4))),
        rng.normal(size=(8, 6))[::2, 1::3],
        np.zeros((0, 3)),
        np.array(["x", None, 3], dtype=object),
        np.array(["für", "wen"]),
        np.arange(5, dtype=np.int8),
        rng.normal(size=3).astype(np.float16),
    ]
    arrived = travel(lambda members: several)(())
    assert [array.tolist() for array in arrived] == [array.tolist() for array in several]
    assert [array.dtype for array in arrived] == [array.dtype for array in several]

    with sklearn.config_context(transform_output="pandas"):
        packed = pack(len)
    with sklearn.config_context():
        load(packed)
        assert sklearn.get_config()["transform_output"] == "pandas"
    assert sklearn.get_config()["transform_output"] == "default"


def test_the_pickle_of_a_utility_leaves_its_rows_out_and_they_are_not_sent_twice():
    rows = np.ones(1_000_000)
    ours = pack(lambda members: rows.sum())
    assert len(ours.pickled) < 10_000
    assert sum(map(len, ours.buffers)) == rows.nbytes
    assert np.shares_memory(ours.buffers[0], rows)
    owners = dupre.Owners.from_arrays(
        np.random.default_rng(0).normal(size=(2_000, 50)), [0, 1] * 1_000, [0, 1] * 1_000
    )
    validation = owners.X[:9], owners.y[:9]
    sent = pack(dupre.ModelUtility(RandomForestClassifier(), owners, validation=validation))
    size = len(sent.pickled) + sum(map(len, sent.buffers))
    assert size < 1.1 * (owners.X.nbytes + 3 * owners.y.nbytes)


@linux
def test_no_room_for_the_rows_says_where_to_put_them(tmp_path):
    script = f"""
import resource, numpy as np
from dupre import InputError
from dupre.training.packed_utility import pack
import tempfile
tempfile.tempdir = {str(tmp_path)!r}
rows = np.ones(100_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    pack(lambda members: rows.sum()).to_file()
except InputError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "do not fit" in found.stdout
    assert "TMPDIR" in found.stdout
    assert not list(tmp_path.iterdir())


@linux
def test_a_new_run_deletes_rows_that_nobody_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = """
import os, signal
from dupre.training.packed_utility import pack
rows = pack(len).to_file()
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment)
    (left,) = tmp_path.iterdir()
    in_use = pack(len).to_file()
    other = {tmp_path / "dupre-rows-folder"}
    (tmp_path / "dupre-rows-folder").mkdir()
    if os.getuid() == 0:
        other.add(tmp_path / "dupre-rows-theirs")
        (tmp_path / "dupre-rows-theirs").touch()
        os.chown(tmp_path / "dupre-rows-theirs", 12345, 12345)
    dupre.engines.Local().start(len).close()
    assert not left.exists()
    assert set(tmp_path.iterdir()) == {in_use.path, *other}
    in_use.delete()
    in_use.delete()  # does no harm
