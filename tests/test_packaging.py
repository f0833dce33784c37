"""What `pip install dupre` installs: the wheel and the source archive as they are released."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import dupre

ROOT = Path(__file__).parents[1]
NAME = f"dupre-{dupre.__version__}"


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, away from the repository and whatever `PYTHONPATH` names."""
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory) -> Path:
    """A directory with the source archive and the wheel built from it."""
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place, ROOT, cwd=place)
    return place


def test_the_archives_hold_what_is_used_and_nothing_else(archives):
    built = {path.name for path in archives.iterdir()}
    assert built == {f"{NAME}.tar.gz", f"{NAME}-py3-none-any.whl"}
    with zipfile.ZipFile(archives / f"{NAME}-py3-none-any.whl") as wheel:
        modules = {name for name in wheel.namelist() if ".dist-info/" not in name}
        license_text = wheel.read(f"{NAME}.dist-info/licenses/LICENSE")
    ours = {path for path in (ROOT / "src").rglob("*") if path.is_file()}
    expected = {str(path.relative_to(ROOT / "src")) for path in ours if path.suffix != ".pyc"}
    assert modules == expected
    assert {"dupre/py.typed", "dupre/report/templates/page.html"} <= modules
    assert license_text == (ROOT / "LICENSE").read_bytes()
    with tarfile.open(archives / f"{NAME}.tar.gz") as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    top = {name.partition("/")[0] for name in names}
    assert {"src", "docs", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"} <= top
    assert not top & {".ci", "tests"}
    assert not any(name.startswith("benchmarks/tables") for name in names)


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_of_its_own(archives, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "fresh", cwd=tmp_path)
    scripts = Path(sysconfig.get_path("scripts", "venv", vars={"base": str(tmp_path / "fresh")}))
    python = scripts / Path(sys.executable).name
    wheel = archives / f"{NAME}-py3-none-any.whl"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", python]
    run(*pip, "install", "--no-deps", "--no-index", "--no-compile", wheel, cwd=tmp_path)
    # What dupre depends on is taken from here; what is installed there comes first.
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    here = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    Path(site.strip(), "dependencies.pth").write_text("\n".join(here))
    assert run(scripts / "dupre", "--version", cwd=tmp_path) == f"dupre {dupre.__version__}\n"
    code = "import dupre, importlib.metadata as m; print(dupre.__file__, m.version('dupre'))"
    file, version = run(python, "-c", f"{code}; dupre.value", cwd=tmp_path).split()
    assert Path(file).is_relative_to(tmp_path / "fresh")
    assert version == dupre.__version__
