"""The command line gives the models of the library, as one JSON object or in words."""

import numpy as np
import pytest
from helpers.command_line import N, P, fit, run, run_json, same_model, solve

import bestk
from bestk.selection.cross_validation import cross_validate_batches

KEYS = (
    "k alpha support coef intercept objective lower_bound gap explained_gap status proven "
    "conditional at_bounds assumptions r2 n_samples n_features n_nodes seconds criteria version"
)


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        ([], {}),
        (["--alpha", "2.5"], {"alpha": 2.5}),
        (["--no-intercept"], {"fit_intercept": False}),
        (
            ["--include", "size1,size2", "--exclude", "size0", "--exclude", "size5"],
            {"include": ["size1", "size2"], "exclude": ["size0", "size5"]},
        ),
        (["--nonnegative", "--upper", "0.5"], {"bounds": (0, 0.5)}),
        (["--lower", "-0.1"], {"bounds": (-0.1, np.inf)}),
        (["--threads", "1", "--gap-tol", "0"], {"gap_tol": 0}),
    ],
)
def test_fit_is_solve(file, frame, options, keywords):
    document = fit(file, "-k", 3, *options)
    same_model(document, solve(frame, **keywords))
    assert document["proven"] is True
    assert document["gap"] <= 1e-4


def test_fit_with_weights(file, frame):
    document = run_json("fit", file, "-t", "price", "-k", 2, "--weight", "count")
    same_model(document, solve(frame, k=2, sample_weight=frame["count"]))


def test_the_json_of_a_model_has_these_keys(file, frame):
    document = fit(file, "-k", 3)
    assert list(document) == KEYS.split()
    assert list(document["criteria"]) == ["aicc", "bic", "ebic"]
    assert document["criteria"]["bic"] == pytest.approx(solve(frame).criterion("bic"))
    assert document["n_samples"] == N
    assert document["n_features"] == P
    assert document["status"] == "optimal"
    assert document["version"] == bestk.__version__


def test_numbers_that_are_not_finite_are_null(tmp_path):
    (tmp_path / "tiny.csv").write_text("a,b,y\n1,0,1\n0,1,2\n1,1,2.5\n")
    document = run_json("fit", tmp_path / "tiny.csv", "-k", 2)
    assert document["criteria"]["aicc"] is None


@pytest.mark.parametrize("suffix", [".tsv", ".csv.gz", ".parquet", ".feather", ".npz"])
def test_every_format_gives_the_same_model(file, frame, tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".feather":
        frame.to_feather(path)
    elif suffix == ".npz":
        np.savez(path, **{name: frame[name] for name in frame})
    else:
        frame.to_csv(path, sep="\t" if suffix == ".tsv" else ",", index=False)
    ours, csv = fit(path, "-k", 4), fit(file, "-k", 4)
    assert ours["support"] == csv["support"]
    assert ours["objective"] == pytest.approx(csv["objective"], rel=1e-10)


def test_rows_pass_in_batches_and_once(file, frame, force, monkeypatch):
    from bestk.readers import data as readers

    force.reading(batch_bytes=8 * P * 9)
    sizes = []
    batches = readers.Data.__iter__

    def watched(self):
        for batch in batches(self):
            sizes.append(len(batch[1]))
            yield batch

    monkeypatch.setattr(readers.Data, "__iter__", watched)
    for command in (["fit", "-k", 3], ["path", "--max-k", 3], ["cv", "--max-k", 2]):
        sizes.clear()
        outcome = run(command[0], file, *command[1:], "-t", "price", "--drop", "count")
        assert outcome.exit_code == 0, outcome.output
        assert sizes == [9] * 8 + [8]


def test_path_is_solve_path(file, frame):
    options = ["--target", "price", "--drop", "count", "--criterion", "bic"]
    document = run_json("path", file, *options, "--ks", "1,3-4")
    X = frame.drop(columns=["price", "count"])
    path = bestk.solve_path(X, frame["price"], [1, 3, 4], fit_intercept=True)
    assert document["criterion"] == "bic"
    assert document["proven"] is True
    for ours, theirs in zip(document["results"], path.results, strict=True):
        same_model(ours, theirs)
    same_model(document["chosen"], path.best("bic"))


def test_a_path_stops_at_the_number_of_features(file):
    document = run_json("path", file, "-t", "price", "--drop", "count", "--max-k", 50)
    assert [model["k"] for model in document["results"]] == list(range(1, P + 1))


def test_cv_is_cross_validation_and_a_fit_of_all_rows(file, frame):
    options = ["--max-k", 4, "--alphas", "0,1", "--folds", 3, "--rule", "one-se", "--seed", 7]
    document = run_json("cv", file, "-t", "price", "--drop", "count", *options)
    X = frame.drop(columns=["price", "count"])
    batches = [(X, frame["price"])]
    validation, _ = cross_validate_batches(batches, range(1, 5), [0, 1], n_folds=3, seed=7)
    alpha, k = validation.best("one-se")
    assert document["chosen"] == {"alpha": alpha, "k": k}
    means = [row["mean"] for row in document["table"]]
    np.testing.assert_allclose(means, validation.mean.ravel(), rtol=1e-8)
    errors = [row["standard_error"] for row in document["table"]]
    np.testing.assert_allclose(errors, validation.standard_error.ravel(), rtol=1e-6)
    assert [row["k"] for row in document["table"]] == [1, 2, 3, 4] * 2
    assert document["share_proven"] == 1.0
    same_model(document["model"], solve(frame, k, alpha=alpha))


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (["fit", "-k", "3"], ["80 rows, 8 features", "intercept", "Proven:", "lower bound"]),
        (["path", "--max-k", "3"], ["aicc chooses k = 3", "size0, size2", "Proven:"]),
        (["cv", "--max-k", "3"], ["mean squared error", "100% of", "rule min chooses k = 3"]),
    ],
)
def test_what_people_read(file, arguments, pieces):
    command, *options = arguments
    outcome = run(command, file, *options, "-t", "price", "--drop", "count")
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    for piece in pieces:
        assert piece in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path):
    (tmp_path / "data.csv").write_text("[red]a,[/b],y\n1,0,1\n0,1,2\n1,1,3.5\n2,1,4\n3,3,9\n")
    outcome = run("fit", tmp_path / "data.csv", "-k", 2)
    assert outcome.exit_code == 0
    assert "[red]a" in outcome.stdout
    assert "[/b]" in outcome.stdout


@pytest.mark.parametrize("command", [["fit", "-k", "2"], ["path", "--max-k", "2"], ["cv"]])
def test_reports_are_pages(file, tmp_path, command):
    page = tmp_path / "report.html"
    options = ["-t", "price", "--drop", "count", "--report", page]
    outcome = run(command[0], file, *command[1:], *options)
    assert outcome.exit_code == 0, outcome.output
    assert "</html>" in page.read_text()


def test_demo_proves_something():
    outcome = run("demo", "--quiet")
    assert outcome.exit_code == 0
    assert "10 of the 10 features" in outcome.stdout
    assert "Proven:" in outcome.stdout
