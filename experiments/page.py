"""The tables of docs/paper.md: what the paper prints beside what was measured here.

The page has a pair of comments around each of them, `<!-- NAME -->` and `<!-- end -->`; what lies
between is written anew from `experiments/scores/` and `experiments/printed.csv`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from experiments.report import ROOT, format_mean

PAGE = ROOT / "docs" / "paper.md"
PRINTED = ROOT / "experiments" / "printed.csv"


def compare(name: str, scores: pd.DataFrame) -> str:
    """Paper and ours side by side for all that the paper prints of an experiment, as Markdown."""
    printed = pd.read_csv(PRINTED, dtype={"printed": str})
    printed = printed[printed["experiment"] == name]
    said = printed.set_index(["game", "trainings", "method", "measure"])["printed"]
    by = ["game", "trainings", "method"]
    lines = []
    for _, part in printed.groupby("trainings", sort=False):
        trainings = part["trainings"].iloc[0]
        measures = list(dict.fromkeys(part["measure"]))
        head = [f"{m}, {who}" for m in measures for who in ("paper", "ours")]
        lines += ["| " + " | ".join([*by, *head]) + " |", "|---" * (3 + len(head)) + "|"]
        for key, rows in scores[scores["trainings"] == trainings].groupby(by, sort=False):
            cells = []
            for measure in measures:
                cells += [said.get((*key, measure), "–"), format_mean(rows[measure].to_numpy())]
            lines.append("| " + " | ".join([*map(str, key), *cells]) + " |")
        lines.append("")
    return "\n".join(lines)


def write_page(parts: dict[str, str], page: Path = PAGE) -> None:
    """Put new text between the comments of each name that the page has."""
    text = page.read_text()
    for name, part in parts.items():
        marks = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = marks.sub(lambda match, part=part: f"{match[1]}\n{part}\n\n{match[2]}", text)
    page.write_text(text)
