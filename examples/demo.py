"""What is each hospital's data worth? Eight owners of scikit-learn's digits, two of them odd.

    python examples/demo.py [--figure FILE]

One owner has shuffled labels, one holds a copy of another's rows. dupre trains 40 models; then all
255 are trained, only to show how far off it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre

BUDGET = 40


def digits_of_eight_owners(seed: int = 0) -> tuple[dupre.Owners, tuple[np.ndarray, np.ndarray]]:
    """Six honest owners of different size, one mislabelled, one with a copy of another's rows."""
    X, y = load_digits(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    rng = np.random.default_rng(seed)
    names = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Fay", "Gus (mislabelled)"]
    parts = np.split(rng.permutation(len(y)), [40, 100, 180, 300, 440, 600])
    data = {name: (X[part], y[part]) for name, part in zip(names, parts, strict=True)}
    X_gus, y_gus = data["Gus (mislabelled)"]
    data["Gus (mislabelled)"] = (X_gus[:150], rng.permutation(y_gus[:150]))
    data["Eve's copy"] = data["Eve"]
    return dupre.Owners.from_mapping(data), (X_val, y_val)


def main(figure: Path | None) -> None:
    """Value the owners, then compare with the exact values."""
    owners, validation = digits_of_eight_owners()
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    utility = dupre.ModelUtility(model, owners, validation=validation, metric="accuracy")

    print(f"{owners.n} owners of {len(owners.y)} handwritten digits; one model per coalition,")
    print(f"scored by its accuracy on {len(validation[1])} others. Training {BUDGET} of 255.\n")
    valuation = dupre.value(owners, utility, budget=BUDGET)
    print(valuation)

    print("\nTraining all 255 to see how far off that was ...")
    exact = dupre.value(owners, utility, budget=255)
    error = (valuation.values - exact.values).abs()
    inside = valuation.interval()["low"].le(exact.values) & valuation.interval()["high"].ge(
        exact.values
    )
    print(f"Trainings saved: {255 - BUDGET} of 255 ({(255 - BUDGET) / 255:.0%}).")
    print(
        f"Largest error of a value: {error.max():.4f}, mean {error.mean():.4f}; the values "
        f"range from {exact.values.min():.3f} to {exact.values.max():.3f}."
    )
    print(f"Exact values inside their 95 % interval: {inside.sum()} of {owners.n}.")
    if figure:
        draw(valuation, exact, figure)


def draw(valuation: dupre.Valuation, exact: dupre.Valuation, file: Path) -> None:
    """Values with intervals and the exact values, as a figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    frame = valuation.to_frame().sort_values("value")
    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    half = frame["high"] - frame["value"]
    ax.errorbar(frame["value"], frame.index, xerr=half, fmt="o", capsize=4, color="#1f5fa8",
                label=f"dupre, {valuation.evaluated} trainings, 95 % interval")  # fmt: skip
    ax.plot(exact.values[frame.index], frame.index, "x", color="#c1440e", markersize=9,
            label=f"exact, {exact.evaluated} trainings")  # fmt: skip
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set_xlabel("Shapley value (accuracy)")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(file, dpi=130, metadata={"Software": None})
    print(f"Figure written to {file}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path)
    main(parser.parse_args().figure)
