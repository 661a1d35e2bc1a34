"""A model as JSON comes back to the last bit, and a bad file says what is wrong."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.checks import assert_same

import bestk
from bestk import rules, storage

LOST = {"certificate", "history"}


def solved(kind):
    X, y, _ = bestk.datasets.make_synthetic(60, 8, k=4, rho=0.5)
    if kind == "plain":
        return X, bestk.solve(X, y, 3)
    X = pd.DataFrame(X, columns=['"a"', "b c", "温度", "d\n", "e", "f", "g", "h"])
    if kind == "named":
        return X, bestk.solve(X, y, 3, alpha=0.1, fit_intercept=True, bounds=(-0.5, np.inf))
    if kind == "stopped":
        slow = bestk.Advanced(enumeration=False, batch_size=1)
        return X, bestk.solve(X, y, 3, node_limit=1, advanced=slow)
    if kind == "automatic box":
        return X, bestk.solve(X, y, 3, bounds="auto")
    if kind == "nothing":
        return X, bestk.solve(X, y, 0)
    groups = {"one": ["e", "f"]}
    if kind == "rules":
        return X, bestk.solve(X, y, 3, groups=groups, rules=[rules.at_most(1, ["g", "h"])])
    return X, bestk.solve(X, y, 3, groups=groups, constraints=["e + f <= 0.1"], alpha=0.2)


KINDS = ["plain", "named", "stopped", "automatic box", "nothing", "rules", "constraints"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_comes_back(kind, tmp_path):
    X, result = solved(kind)
    written = result.to_json(tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text(encoding="utf-8") == written
    for source in (written, tmp_path / "model.json", str(tmp_path / "model.json")):
        again = storage.from_json(source)
        np.testing.assert_array_equal(again.predict(X), result.predict(X))
        for name in result.__dataclass_fields__.keys() - LOST:
            assert_same(getattr(again, name), getattr(result, name))
        assert again.certificate is None
        assert str(again).replace(" (not counted)", "") == str(result)
        assert again.to_html()
    kept = json.loads(written)
    assert kept["certificate"]["fingerprint"] == result.certificate.fingerprint
    kept["certificate"] = None
    assert json.loads(again.to_json()) == kept


def test_json_is_strict_and_says_what_was_asked():
    _, result = solved("constraints")
    content = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert content["structure"]["constraints_in_words"] == list(result.structure.constraint_words)
    assert content["structure"]["lower"] == ["-inf"]
    assert content["versions"]["bestk"] == bestk.__version__
    assert [term["name"] for term in content["terms"]] == result.names


def without(content, key):
    return {name: value for name, value in content.items() if name != key}


@pytest.mark.parametrize("kind", ["named", "constraints"])
def test_every_missing_entry_is_named(kind):
    content = json.loads(solved(kind)[1].to_json())
    for key in content.keys() - {"format", "version", "equation", "certificate", "versions"}:
        with pytest.raises(ValueError, match=f"broken model.*{key}"):
            storage.from_json(json.dumps(without(content, key)))
    for key in content["structure"] or ():
        broken = content | {"structure": without(content["structure"], key)}
        with pytest.raises(ValueError, match=f"broken model.*{key}"):
            storage.from_json(json.dumps(broken))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "holds no model"),
        ({"version": 99}, "format version 99, this bestk reads 1"),
        ({"status": "GREAT"}, "no status is 'GREAT'"),
        ({"n_features": 2}, "feature_names"),
        ({"n_features": -1}, "n_features"),
        ({"feature_names": "abcdefgh"}, "feature_names must be texts"),
        ({"objective": "nan"}, "must be finite"),
        ({"intercept": "much"}, "could not convert"),
        ({"k": 2.5}, "counts"),
        ({"terms": [{"feature": 8, "coef": 1.0}]}, "not there"),
        ({"terms": [{"feature": -1, "coef": 1.0}]}, "not there"),
        ({"terms": [{"feature": 1, "coef": 1.0}] * 2}, "must increase"),
        ({"terms": [{"feature": 1, "coef": "inf"}]}, "must be finite"),
        ({"terms": 5}, "broken model"),
        ({"structure": []}, "broken model"),
        ({"structure": {"groups": []}}, "broken model"),
        ({"fit_intercept": 1}, "fit_intercept"),
        ({"n_features": 10**15, "feature_names": None, "terms": []}, "more than memory"),
        ({"feature_names": ["\ud800", *"bcdefgh"]}, "feature_names must be texts"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"n_samples": 10**400}, "n_samples must be a count"),
    ],
)
def test_wrong_entries_are_refused(change, message):
    content = json.loads(solved("named")[1].to_json()) | change
    with pytest.raises(ValueError, match=message):
        storage.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("groups", [0, 1]), ("groups", [0.5] * 8), ("sides", [99]), ("chosen", [99]),
        ("matrix", [[1.0]]), ("matrix", []), ("upper", []), ("group_names", [1]),
        ("multipliers", 1.0), ("multipliers", [1.0, 2.0]), ("lower", [[0.0]]),
        ("constraints_in_words", []),
    ],
)  # fmt: skip
def test_wrong_structures_are_refused(key, value):
    content = json.loads(solved("constraints")[1].to_json())
    content["structure"][key] = value
    with pytest.raises(ValueError, match="broken model"):
        storage.from_json(json.dumps(content))


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b"{", b"\xff\xfe", b'"text"', b"PK\x03\x04"])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.json"):
        storage.from_json(path)
    with pytest.raises(FileNotFoundError):
        storage.from_json(tmp_path / "nothing.json")


def test_long_numbers_are_refused_in_words(tmp_path):
    (tmp_path / "model.json").write_text('{"format": ' + "1" * 10_000 + "}")
    with pytest.raises(ValueError, match=r"model\.json is not JSON"):
        storage.from_json(tmp_path / "model.json")


def test_the_size_of_a_file_has_a_limit(tmp_path, monkeypatch):
    _, result = solved("plain")
    result.to_json(tmp_path / "model.json")
    monkeypatch.setenv("BESTK_MAX_BYTES", "1000")
    with pytest.raises(ValueError, match=r"model\.json has .* bytes.*BESTK_MAX_BYTES"):
        storage.from_json(tmp_path / "model.json")
