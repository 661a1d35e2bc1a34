"""Text, groups, rules and constraints on the command line."""

import numpy as np
import pandas as pd
import pytest
from helpers.command_line import run, run_json, same_model

import bestk
from bestk import rules, storage
from bestk.cli.question import choices, chosen_by
from bestk.cli.structure import n_choices
from bestk.readers import DataError, open_data

N = 120
CITIES = ["Bonn", "Oslo, Norway", "Rome", "Wien"]
INDICATORS = [f"city={city}" for city in CITIES[1:]]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(N, 4)), columns=["a", "b", "c", "d"])
    frame["a:b"] = frame["a"] * frame["b"]
    frame["city"] = rng.choice(CITIES, N)
    frame["sex"] = rng.choice(["f", "m"], N)
    frame["noise"] = rng.normal(size=N)
    effect = frame["city"].map(dict(zip(CITIES, [0.0, 1.0, -2.0, 0.5], strict=True)))
    signal = 2 * frame["a"] - frame["b"] + frame["a:b"] + effect + 0.7 * (frame["sex"] == "m")
    return frame.assign(price=signal + 0.3 * frame["noise"]).drop(columns="noise")


@pytest.fixture(scope="module")
def numbers(frame):
    """The features, made by hand."""
    X = frame[["a", "b", "c", "d", "a:b"]].copy()
    for city in CITIES[1:]:
        X[f"city={city}"] = (frame["city"] == city).astype(float)
    return X.assign(**{"sex=m": (frame["sex"] == "m").astype(float)})


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("structure") / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The same rows in files, none of which has all levels."""
    folder = tmp_path_factory.mktemp("structure") / "pieces"
    folder.mkdir()
    ends = np.append(np.flatnonzero(np.diff(frame["city"].factorize()[0]))[[0, 4]] + 1, N)
    for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        piece = frame[start:end].reset_index(drop=True)
        piece.to_parquet(folder / f"part-{i}.parquet", row_group_size=11)
    return folder


@pytest.fixture
def data(file):
    return open_data(file, target="price")


def asked(data, *, include=(), exclude=(), free=(), group=(), rule=(), hierarchy=None, more=()):
    return choices(data, include, exclude, free, group, rule, hierarchy, more)


# As it is typed -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("at most 2 of a, b, c", rules.at_most(2, ["a", "b", "c"])),
        ("At  least 1 of a,b ", rules.at_least(1, ["a", "b"])),
        ("not both a, b", rules.exclusive("a", "b")),
        ("exclusive a, b, city", rules.exclusive("a", "b", "city")),
        ("a:b needs a, b", rules.implies("a:b", ["a", "b"])),
        ("c needs any of a, b", rules.implies("c", ["a", "b"], any=True)),
        ("sex needs city=Oslo, Norway,a", rules.implies("sex", [INDICATORS[0], "a"])),
        ("max correlation 0.8", rules.max_correlation(0.8)),
        ("max correlation .5", rules.max_correlation(0.5)),
    ],
)
def test_rules_are_read(data, text, rule):
    assert asked(data, rule=[text])["rules"] == [rule]


def test_several_rules_and_a_hierarchy(data):
    found = asked(data, rule=["a, b needs c", "at most 1 of c, d"], hierarchy="weak")["rules"]
    needs = [rules.implies(name, ["c"]) for name in "ab"]
    assert found == [*needs, rules.at_most(1, ["c", "d"]), rules.hierarchy("weak")]


@pytest.mark.parametrize(
    "text", ["", "a", "at most of a", "at most two of a, b", "needs a", "max correlation x", "at 1"]
)
@pytest.mark.parametrize("command", [["fit", "-k", "2"], ["path"], ["cv"], ["alternatives", "-k1"]])
def test_other_forms_are_wrong_usage(file, command, text):
    outcome = run(command[0], file, *command[1:], "-t", "price", "--rule", text)
    assert outcome.exit_code == 2
    words = " ".join(outcome.stderr.replace("│", " ").split())
    assert f"--rule: {text!r} is not a rule" in words
    for form in ("at most 2 of a, b, c", "x needs any of a, b", "max correlation 0.8"):
        assert form in words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "at most 1 of a, e"], "--rule: there is no column 'e'"),
        (["--rule", "exclusive a"], "exclusive: 'a' alone excludes nothing"),
        (["--rule", "max correlation 2"], "max_correlation: limit must be above 0 and at most 1"),
        (["--group", "g=a,e"], "--group: there is no column 'e'"),
        (["--group", "g=a,b", "--group", "g=c,d"], "--group: there are two groups named 'g'"),
        (["--group", "g=a,b", "--group", "h=b,c"], "'b' is in two groups, 'g' and 'h'"),
        (["--group", "city=a,b"], "--group: 'city' is a column of text already"),
        (["--group", "g=city=Rome,a"], "'city=Rome' is in two groups, 'city' and 'g'"),
        (["--group", "a=b,c"], "a group 'a', but there is a column 'a' outside it"),
        (["--constraint", "a + e = 1"], "--constraint: in 'a + e = 1', there is no feature 'e'"),
        (["--constraint", "a"], "--constraint: 'a' has no <=, >= or ="),
        (["--include", "town"], "--include: there is no column 'town'"),
        (["--numeric", "sex,city"], "column 'city' holds text ('"),
        (["--numeric", "sex", "--text", "sex"], "--numeric sex and --text sex are one column"),
    ],
)
def test_bad_input_is_code_1_and_a_message(file, options, message):
    outcome = run("fit", file, "-k", 2, "-t", "price", *options, "--json")
    assert outcome.exit_code == 1, outcome.output
    assert outcome.stdout == ""
    assert outcome.stderr.count("\n") == 1
    assert outcome.stderr.startswith("bestk: ")
    assert message in outcome.stderr


@pytest.mark.parametrize("text", ["g", "g=", "=a,b"])
def test_groups_have_names_and_columns(file, text):
    outcome = run("fit", file, "-k", 2, "-t", "price", "--group", text)
    assert outcome.exit_code == 2
    assert "is not like size=height,width" in " ".join(outcome.stderr.replace("│", " ").split())


def test_groups_are_those_of_text_and_those_that_are_named(data):
    text = {"city": INDICATORS, "sex": ["sex=m"]}
    options = asked(data)
    assert options == {"include": [], "exclude": [], "free": [], "groups": text}
    assert n_choices(data, options) == 7
    found = asked(data, group=["g=a,b", "h=c, d"])
    assert found["groups"] == text | {"g": ["a", "b"], "h": ["c", "d"]}
    assert n_choices(data, found) == 5
    found = asked(data, group=["place=city,d"])
    assert found["groups"] == {"place": [*INDICATORS, "d"], "sex": ["sex=m"]}


def test_names_of_groups_stand_for_their_features(data):
    found = asked(data, include=["city,a"], exclude=["sex"], free=["g"], group=["g=c,d"])
    assert found["include"] == [*INDICATORS, "a"]
    assert found["exclude"] == ["sex=m"]
    assert found["free"] == ["c", "d"]
    with pytest.raises(DataError, match="--include: there is no column 'price'"):
        asked(data, include=["price"])


def test_nothing_is_asked_for_where_there_is_no_structure(file):
    data = open_data(file, target="price", drop=["city"])
    assert asked(data).keys() == {"include", "exclude", "free"}
    assert asked(data, rule=["not both sex, a"])["groups"] == {"sex": ["sex=m"]}
    assert asked(data, more=["a + b = 1"])["constraints"] == ["a + b = 1"]


def test_two_kinds_of_rules_of_cv():
    assert chosen_by(None) == ("min", [])
    assert chosen_by(["not both a, b", "one-se", "c needs d"]) == (
        "one-se",
        ["not both a, b", "c needs d"],
    )


def test_options_are_where_they_work():
    structure = ("--group", "--rule", "--hierarchy", "--constraint")
    for command in ("fit", "path", "cv", "alternatives"):
        text = run(command, "--help").stdout
        assert all(option in text for option in (*structure, "--numeric", "--text"))
    for command in ("verify", "discover"):
        text = run(command, "--help").stdout
        assert not any(option in text for option in structure)
    assert "--numeric" in run("verify", "--help").stdout
    assert "--numeric" not in run("discover", "--help").stdout


# Models -------------------------------------------------------------------------------------------


def solve(frame, numbers, k=3, **options):
    return bestk.solve(numbers, frame["price"], k, fit_intercept=True, **options)


def test_two_levels_are_a_feature(file, frame, numbers, tmp_path):
    run_file, columns = tmp_path / "run.npz", ["-t", "price", "--drop", "city"]
    document = run_json("fit", file, "-k", 4, *columns, "--include", "sex", "--save", run_file)
    X = numbers.drop(columns=INDICATORS)
    same_model(document, solve(frame, X, 4, include=["sex=m"]))
    assert document["baseline"] == {"sex": "f"}
    assert run_json("verify", run_file, file, *columns)["is_valid"] is True
    assert run_json("verify", run_file, file, *columns, "--exact")["is_valid"] is True
    outcome = run("fit", file, "-k", 4, *columns)
    assert "sex: compared with f\n" in outcome.stdout
    assert "sex=m" in outcome.stdout


@pytest.mark.parametrize("workers", [False, True])
def test_a_table_as_it_is(file, folder, frame, numbers, tmp_path, request, workers):
    """The best four: a, b, a:b, and all of city."""
    run_file, where = tmp_path / "run.npz", []
    if workers:
        where = ["--scheduler", request.getfixturevalue("client").scheduler.address]
    document = run_json("fit", folder, "-t", "price", "-k", 4, "--save", run_file, *where)
    same_model(document, solve(frame, numbers, 4, groups={"city": INDICATORS}))
    assert set(document["support"]) == {"a", "b", "a:b", *INDICATORS}
    assert document["baseline"] == {"city": "Bonn", "sex": "f"}
    for path in (folder, file):
        assert run_json("verify", run_file, path, "-t", "price")["is_valid"] is True
    assert storage.load(run_file).feature_names == tuple(numbers.columns)


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (["--group", "g=a,c"], {"groups": {"city": INDICATORS, "g": ["a", "c"]}}),
        (["--rule", "at most 1 of a, b"], {"rules": [rules.at_most(1, ["a", "b"])]}),
        (["--rule", "at least 1 of c, d"], {"rules": [rules.at_least(1, ["c", "d"])]}),
        (["--rule", "not both city, a"], {"rules": [rules.exclusive("city", "a")]}),
        (
            ["--rule", "city needs any of c, d"],
            {"rules": [rules.implies("city", ["c", "d"], True)]},
        ),
        (["--rule", "max correlation 0.3"], {"rules": [rules.max_correlation(0.3)]}),
        (["--hierarchy", "strong"], {"rules": [rules.hierarchy("strong")]}),
        (["--constraint", "a + b = 0.5"], {"constraints": ["a + b = 0.5"]}),
    ],
)
def test_fit_is_solve(file, frame, numbers, options, keywords):
    document = run_json("fit", file, "-t", "price", "-k", 3, *options)
    same_model(document, solve(frame, numbers, **{"groups": {"city": INDICATORS}} | keywords))
    assert document["proven"] is True


def test_what_people_read(file):
    options = ["--rule", "not both a, b", "--constraint", "a + c <= 1"]
    outcome = run("fit", file, "-t", "price", "-k", 3, *options)
    assert outcome.exit_code == 0, outcome.output
    for line in ("city: compared with Bonn", "rules", "  at most 1 of a, b"):
        assert f"{line}\n" in outcome.stdout
    assert "rules" not in run("fit", file, "-t", "price", "-k", 3).stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_a_path_goes_up_to_the_number_of_groups(file, frame, numbers):
    options = ["-t", "price", "--max-k", 50, "--rule", "a:b needs a, b"]
    document = run_json("path", file, *options)
    assert [model["k"] for model in document["results"]] == list(range(1, 8))
    keywords = {"groups": {"city": INDICATORS}, "rules": [rules.implies("a:b", ["a", "b"])]}
    for model in document["results"]:
        same_model(model, solve(frame, numbers, model["k"], **keywords))
    assert "rules\n" in run("path", file, *options).stdout


def test_cross_validation_with_rules(file, frame, numbers):
    options = ["--max-k", 4, "--rule", "one-se", "--rule", "not both a, b", "--folds", 3]
    document = run_json("cv", file, "-t", "price", *options)
    assert document["rule"] == "one-se"
    keywords = {"groups": {"city": INDICATORS}, "rules": [rules.exclusive("a", "b")]}
    same_model(document["model"], solve(frame, numbers, document["chosen"]["k"], **keywords))


def test_alternatives_with_rules(file, tmp_path):
    options = ["-t", "price", "-k", 3, "--within", "50%", "--rule", "not both a, b"]
    document = run_json("alternatives", file, *options, "--save", tmp_path / "list.npz")
    assert document["complete"] is True
    for model in document["models"]:
        assert not {"a", "b"} <= set(model["support"])
        assert len(set(INDICATORS) & set(model["support"])) in (0, 3)
    assert run_json("verify", tmp_path / "list.npz", file, "-t", "price")["is_valid"] is True


def test_a_checkpoint_of_a_fit_with_rules(file, tmp_path):
    path, options = tmp_path / "run.ckpt", ["-t", "price", "-k", 3, "--rule", "not both a, b"]
    first = run("fit", file, *options, "--checkpoint", path, "--node-limit", 0)
    assert first.exit_code in (0, 3), first.output
    assert run_json("fit", file, *options, "--checkpoint", path)["proven"] is True
