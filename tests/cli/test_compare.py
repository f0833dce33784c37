import json

from command_tables import (
    result,
)
from commands import refuse, run


def test_compare_prints_the_probability_and_predict_knows_any_coalition(finished):
    found = result(finished)
    best, worst = found.values.idxmax(), found.values.idxmin()
    sentence = run("compare", "dupre-wine", worst, best, cwd=finished).stdout
    assert sentence.startswith(f"Shapley: {best} is worth more than {worst} with a probability of ")
    told = json.loads(run("compare", "dupre-wine", best, worst, "--json", cwd=finished).stdout)
    assert [one["semivalue"] for one in told] == ["Shapley", "Banzhaf"]
    assert told[0]["probability"] == found.probability_greater().loc[best, worst]
    assert told[0]["low"] < told[0]["difference"] < told[0]["high"]
    message = refuse("compare", "dupre-wine", "Alba", "Elba", cwd=finished)
    assert "unknown owner 'Elba' (did you mean 'Alba'?); the owners are 'Alba', 'Barolo'" in message

    trained = json.loads(found.evaluations["coalition"][0])
    everyone = found.facts.evidence.coalitions
    missing = everyone[everyone["utility"].isna()]["members"].iloc[0]
    both = ("--members", ",".join(trained), "--members", ", ".join(missing))
    lines = run("predict", "dupre-wine", *both, cwd=finished).stdout.splitlines()
    assert lines[0].endswith(", as evaluated")
    assert lines[1].startswith("{" + ", ".join(missing) + "}: ")
    assert lines[1].endswith("), predicted")
    told = json.loads(run("predict", "dupre-wine", *both, "--json", cwd=finished).stdout)
    assert told[0]["utility"] == found.evaluations["utility"][0]
    assert told[1]["low"] < told[1]["utility"] < told[1]["high"]
