"""Groups by source: what scikit-learn's transformers make of a column, known by its name."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

import bestk


@pytest.fixture
def table():
    """Patients: numbers and categories, both with missing values, and a rare level."""
    rng = np.random.default_rng(3)
    n = 96
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n),
            "age_first": rng.normal(40, 10, n),  # begins as another column does
            "mean dose": rng.gamma(2.0, 1.0, n),
            "site": rng.choice(["colon", "lung", "rare site"], n, p=[0.5, 0.45, 0.05]),
            "stage": rng.choice(["I", "II_a", "II_b"], n),
        }
    )
    frame.loc[rng.random(n) < 0.2, ["age"]] = np.nan
    frame.loc[rng.random(n) < 0.2, ["stage"]] = np.nan
    effect = frame["stage"].map({"I": 0.0, "II_a": 1.0, "II_b": 2.0}).fillna(1.0)
    return frame, effect + frame["mean dose"] + rng.normal(0, 0.1, n)


NUMBERS, CATEGORIES = ["age", "age_first", "mean dose"], ["site", "stage"]


def encoded(**options):
    return make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), NUMBERS),
        (OneHotEncoder(drop="first", sparse_output=False, handle_unknown="ignore"), CATEGORIES),
        **options,
    ).set_output(transform="pandas")


@pytest.mark.parametrize("prefixed", [True, False])
def test_every_feature_belongs_to_the_column_it_was_made_of(table, prefixed):
    X, y = table
    made = encoded(verbose_feature_names_out=prefixed).fit_transform(X)
    sources = bestk.groups_by_source(X)(tuple(made.columns))
    assert sources[:4] == ["age", "age_first", "mean dose", "age"]
    assert sources[4:] == ["site"] * 2 + ["stage"] * 3
    result = bestk.solve(made, y, k=2, groups=bestk.groups_by_source(X), fit_intercept=True)
    assert result.group_names == ["mean dose", "stage"]
    assert len(result.names) == 4


@pytest.mark.parametrize(
    "transformer",
    [
        SplineTransformer(n_knots=3),
        KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        make_pipeline(StandardScaler(), SplineTransformer(n_knots=3)),
    ],
)
def test_curves_and_bins(table, transformer):
    X = table[0][["age_first", "mean dose"]]
    made = transformer.set_output(transform="pandas").fit_transform(X)
    half = made.shape[1] // 2
    sources = bestk.groups_by_source(table[0])(tuple(made.columns))
    assert sources == ["age_first"] * half + ["mean dose"] * half


def test_products_are_features_of_their_own_and_powers_are_not(table):
    X = table[0][["age_first", "mean dose"]].rename(columns={"mean dose": "dose"})
    made = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas").fit_transform(X)
    sources = bestk.groups_by_source(X)(tuple(made.columns))
    assert dict(zip(made.columns, sources, strict=True)) == {
        "age_first": "age_first",
        "dose": "dose",
        "age_first^2": "age_first",
        "age_first dose": None,
        "dose^2": "dose",
    }


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("site_rare site", "site"),
        ("a__b__site_lung", "site"),
        ("num__age cat__site_lung", None),
        ("mean dose age", None),
        ("num__mean dose num__age", None),
        ("age_first mean dose", None),  # not what is made of age and called "first mean dose"
        ("stage_II_a mean dose", None),
        ("mean dose^2", "mean dose"),
        ("site=lung", "site"),
        ("missingindicator_age_first", "age_first"),
        ("num__missingindicator_mean dose", "mean dose"),
        ("ages", None),
        ("age^2.5", None),
        ("pca0", None),
        ("site__stage", "stage"),
        ("", None),
    ],
)
def test_names(name, source):
    by_source = bestk.groups_by_source([*NUMBERS, *CATEGORIES])
    assert by_source(("age", name)) == ["age", source]


def test_columns_that_nothing_was_made_of_are_named(table):
    X, y = table
    made = encoded().fit_transform(X)
    with pytest.raises(ValueError, match="no feature is made of one of its columns, such as 'si"):
        bestk.solve(made, y, k=1, groups=bestk.groups_by_source("sit"))
    with pytest.raises(TypeError, match="names of columns"):
        bestk.groups_by_source([1, 2])
    with pytest.raises(ValueError, match="'age'"):
        bestk.groups_by_source(["age", "age"])


@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_levels_that_differ_between_folds_stay_in_their_group(table):
    """The rare site is not in every fold, so only a function of names can tell the groups."""
    X, y = table
    X = X.sort_values("site", kind="stable")
    y = y[X.index]
    model = make_pipeline(encoded(), bestk.SparseRidge(groups=bestk.groups_by_source(X)))
    search = GridSearchCV(model, {"sparseridge__k": [1, 2, 3]}, cv=KFold(10), error_score="raise")
    search.fit(X, y)
    sizes = {len(encoded().fit(X.iloc[a]).get_feature_names_out()) for a, _ in KFold(10).split(X)}
    assert len(sizes) > 1
    assert search.best_params_ == {"sparseridge__k": 2}
    assert search.best_estimator_[-1].result_.group_names == ["mean dose", "stage"]


@pytest.mark.parametrize(
    "last",
    [
        bestk.SparseRidge(k=2),
        bestk.SparseRidgeCV(ks=(1, 2), cv=3),
        bestk.SparseSelector(k=2),
        bestk.StabilitySelector(k=2, n_resamples=5, random_state=0),
    ],
)
def test_estimators_take_it_are_cloned_and_pickled(table, last):
    X, y = table
    last.set_params(groups=bestk.groups_by_source(X))
    model = pickle.loads(pickle.dumps(clone(make_pipeline(encoded(), last)).fit(X, y)))[-1]
    named = [name.partition("__")[2] for name in model.feature_names_in_]
    kept = getattr(model, "support_", None)
    kept = model.get_support(indices=True) if kept is None else kept
    wanted = ["mean dose", "stage_II_a", "stage_II_b", "stage_nan"]
    assert [named[j] for j in kept] == wanted


def test_rows_of_a_person_stay_together_and_the_choice_is_nested(table):
    """`groups` of the estimator are columns; those of the splitter are rows, and are routed."""
    X, y = table
    person = np.repeat(np.arange(24), 4)
    model = bestk.SparseRidgeCV(ks=(1, 2), cv=GroupKFold(3), groups=bestk.groups_by_source(X))
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            make_pipeline(encoded(), model),
            X,
            y,
            cv=GroupKFold(4),
            params={"groups": person},
            return_estimator=True,
            error_score="raise",
        )
    chosen = [fitted[-1].result_.group_names for fitted in found["estimator"]]
    assert chosen == [["mean dose", "stage"]] * 4


def test_stability_counts_groups(table):
    X, y = table
    made = encoded().fit_transform(X)
    found = bestk.stability(made, y, 2, n_resamples=3, groups=bestk.groups_by_source(X))
    assert "the best 2 of 5 groups (9 features)" in str(found)


def test_names_of_columns_work_in_other_options(table):
    X, y = table
    groups = bestk.groups_by_source(X)
    model = make_pipeline(encoded(), bestk.SparseRidge(k=2, groups=groups, include=["site"]))
    assert model.fit(X, y)[-1].result_.group_names == ["mean dose", "site"]


def test_without_names_the_way_out_is_told(table):
    X, y = table
    codes = make_column_transformer((OrdinalEncoder(), CATEGORIES))
    model = make_pipeline(codes, bestk.SparseRidge(k=1, groups=bestk.groups_by_source(X)))
    with pytest.raises(ValueError, match="set_output"):
        model.fit(X.fillna({"stage": "?"}), y)
