"""What verbs have in common: finding and opening a run directory, printing an answer."""

from __future__ import annotations

import os
import shlex
import sys
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from dupre.errors import InputError

if TYPE_CHECKING:
    from dupre.cli.job import Job
    from dupre.cli.rundir import RunDirectory
    from dupre.values import Valuation


def opened(
    run: Path, data: str | None = None, validation: str | None = None
) -> tuple[RunDirectory, Job]:
    """A run directory that is there already, with its data."""
    from dataclasses import replace

    from dupre.cli.prepare import prepared
    from dupre.cli.rundir import RunDirectory

    directory = RunDirectory(run)
    config = directory.config()
    if data is not None:
        config = replace(config, data=replace(config.data, path=absolute(data)))
    if not has_magic(config.data.path) and not os.path.exists(config.data.path):
        raise InputError(
            f"the data of {str(run)!r} were in {config.data.path!r}, where nothing is now; say "
            "where they are with --data"
        )
    if validation is not None:
        moved = replace(config.utility, validation=absolute(validation), holdout=0.0)
        config = replace(config, utility=moved)
    return directory, prepared(config)


def print_values(valuations: list[Valuation], *, json: bool) -> None:
    """The tables of a result, or all of it as JSON."""
    if json:
        from dupre.schema import dumped

        print(dumped(valuations))
    else:
        print("\n\n".join(map(str, valuations)))


def print_json(found: object) -> None:
    """Anything as JSON."""
    import json

    print(json.dumps(found, ensure_ascii=False))


def absolute(path: str) -> str:
    """A path as the user typed it, from whatever directory it is used later."""
    return os.path.abspath(os.path.expanduser(path))


def directory_for(run: Path | None, data: str) -> RunDirectory:
    """The run directory asked for, or the one named after the data."""
    from dupre.cli.rundir import RunDirectory
    from dupre.tables.reading import name_of

    return RunDirectory(Path(f"dupre-{name_of(data)}") if run is None else run.expanduser())


def typed() -> str:
    """The command as it was typed."""
    return shlex.join(["dupre", *sys.argv[1:]])
