"""Owners in one pandas frame with an owner column, mixed column types, and a pipeline."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dupre


def patients(rows: int, seed: int) -> pd.DataFrame:
    """Made-up patients of five hospitals; the fifth records outcomes at random."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "hospital": rng.choice(["North", "South", "East", "West", "Coin"], rows),
            "age": rng.integers(20, 90, rows),
            "smoker": rng.random(rows) < 0.3,
            "ward": pd.Categorical(rng.choice(["A", "B", "C"], rows)),
        }
    )
    risk = (frame["age"] - 55) / 10 + 2 * frame["smoker"] + (frame["ward"] == "C")
    ill = risk + rng.normal(size=rows) > 0.5
    coin = frame["hospital"] == "Coin"
    ill[coin] = rng.random(coin.sum()) < 0.5
    return frame.assign(outcome=np.where(ill, "ill", "well"))


train, validation = patients(600, seed=0), patients(800, seed=1).query("hospital != 'Coin'")
owners = dupre.Owners.from_frame(train, owner="hospital", target="outcome")
model = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["ward"]), remainder="passthrough"),
    RandomForestClassifier(n_estimators=30),
)
utility = dupre.ModelUtility(
    model, owners, validation=validation.drop(columns="hospital"), metric="balanced_accuracy"
)
valuation = dupre.value(owners, utility, budget=20, semivalue=dupre.banzhaf)
print(valuation)
print("\nP(row is worth more than column):")
print(valuation.probability_greater().round(2))
