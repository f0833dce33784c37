import pytest

from commands import SMALL, refuse, run, write_small


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = write_small(tmp_path, z=[0.5, 1, 2] * 20)[["owner", "x", "z", "y"]]
    frame.to_csv("data.csv", index=False)
    run("value", *SMALL, "--budget", 3)
    return frame


@pytest.mark.slow
def test_a_run_names_columns_that_are_missing_new_left_out_or_in_another_order(place):
    order = ["owner", "z", "x", "y"]
    for changed, words in (
        (
            place.rename(columns={"x": "age"}),
            "with: 'x' is missing, 'age' is new; give the file its",
        ),
        (place.drop(columns="z"), "with: 'z' is missing; give"),
        (place.assign(k=place["x"] % 7), "with: 'k' is new; give"),
        (place.assign(z=1), "with: 'z' is left out (the same in every row); give"),
        (place[order], "in another order; expected 'x', 'z', got 'z', 'x'; write them in that"),
    ):
        changed.to_csv("changed.csv", index=False)
        message = refuse("resume", "dupre-data", "--data", "changed.csv", "--budget", "+1")
        assert words in message
        assert "--run OTHER" in message
    unused = {"note": [f"text {i}" for i in range(60)], "same": 1, "empty": None}
    place.assign(**unused).to_csv("changed.csv", index=False)
    run("resume", "dupre-data", "--data", "changed.csv", "--budget", "+1")  # they are left out
