"""Results in files: the text of result.json, reading one, all there were of a run, and quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from dupre.errors import InputError
from dupre.files import replace_text
from dupre.result import json
from dupre.result.changes import check_comparable
from dupre.result.history import MOST_RESULTS, History, history
from dupre.result.quotes import KeptQuote
from dupre.result.valuation import Valuation


def result_text(valuations: Sequence[Valuation]) -> str:
    """What result.json holds; the store beside it has the scores on resamples."""
    return json.dumps(valuations, resamples=False)


def read_results(file: Path) -> list[Valuation]:
    """The valuations in a file; InputError if it cannot be read, or is damaged."""
    try:
        return json.loads(file.read_text(encoding="utf-8"), Valuation)
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(str(cause)) from cause


def read_history(
    files: Mapping[str, Path], present: Valuation, most: int | None = MOST_RESULTS + 1
) -> History:
    """The present result after earlier ones, by the same semivalue.

    Those that are damaged, of another version or of another question are named and left out.

    Args:
        files: of the earlier results in the order of time, by what they are called.
        present: the last result.
        most: results to read, the last ones; by default those that are shown and the one before
            them, as each takes time. None to read all.
    """
    left, found, not_read = list(files), [present], []
    # Backwards from the present one, which decides what the question is.
    while left and (most is None or len(found) < most):
        name = left.pop()
        try:
            before = _of_semivalue(read_results(files[name]), present.semivalue)
            check_comparable(before, found[0])
        except InputError as cause:
            not_read.append(f"{name} ({cause})")
        else:
            found.insert(0, before)
    return replace(history(found), earlier=len(left), not_read=tuple(reversed(not_read)))


def _of_semivalue(valuations: Sequence[Valuation], name: str) -> Valuation:
    """The valuation by this semivalue; the first one if there is none."""
    return next((v for v in valuations if v.semivalue == name), valuations[0])


def read_quotes(file: Path) -> list[KeptQuote]:
    """The last quote of each owner, the latest first; InputError if the file is damaged."""
    if not file.is_file():
        return []
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[KeptQuote])
    except msgspec.DecodeError as cause:
        raise InputError(
            f"{str(file)!r} cannot be read ({cause}); delete it, and quote again"
        ) from cause


def keep_quote(file: Path, quote: KeptQuote) -> None:
    """Keep a quote, in place of an earlier one of the same owner."""
    kept = [quote, *(one for one in read_quotes(file) if one.name != quote.name)]
    replace_text(file, msgspec.json.format(msgspec.json.encode(kept)).decode())
