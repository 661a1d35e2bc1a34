"""
A clinical table: categories, missing values, and an honest error
=================================================================

How often do people see a doctor? In the RAND health insurance experiment (1974-1982) families were
given insurance plans at random, and the visits of each member were counted every year. The table
comes with statsmodels. It is like many tables of a hospital: some columns are categories, some
values are missing, and each person has several rows.

This example builds a scikit-learn pipeline around it. Imputation, encoding and the choice of
features happen inside the cross-validation. Then it asks three questions. Which features are
chosen, how sure is that choice, and how large will the error be for new patients?
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import resample
from statsmodels.datasets import randhie

import bestk

visits = randhie.load_pandas().data

# %%
# The table as it was asked
# -------------------------
# Two things in this table would mislead us, so we look before we fit.
#
# **Rows are years, not people.** The table does not say which rows belong to one person. But
# neighbouring rows that agree in all columns except the visits are most likely years of one
# person, or of a family. If one of them is in the training rows and another one in the test rows,
# the test is not honest. So we keep the first row of each such block, and call it a person.
features = visits.drop(columns="mdvis")
people = visits[features.ne(features.shift()).any(axis=1)]
print(f"{len(visits)} years of {len(people)} people")

# %%
# **Gaps are filled already.** The index of chronic diseases is a number such as 3.4 or 10.3.
# But more than a third of the people have one of four values with many decimals. They look like
# means that somebody filled in:
decimals = (10 * people["disea"]).round(6) % 1 != 0
print(people["disea"][decimals].value_counts())

# %%
# In the same way, a physical limitation is 0 or 1, and for 7% of the people something between.
# A mean that stands for a missing value hides that it is missing. So we take these values out, and
# write categories in words again.
health = people[["hlthg", "hlthf", "hlthp"]].dot([1, 2, 3])
table = pd.DataFrame(
    {
        "health": health.map({0: "excellent", 1: "good", 2: "fair", 3: "poor"}),
        "coinsurance": np.expm1(people["lncoins"]).map("{:.0f}%".format),
        "deductible": people["idp"].map({0: "other", 1: "individual"}),
        "limited": people["physlm"].map({0.0: "no", 1.0: "yes"}),  # others are missing
        "chronic": people["disea"].mask(decimals),
        "incentive": people["lpi"],
        "most_paid": people["fmde"],
    }
)
y = np.log1p(people["mdvis"]).rename("log visits")
print(table.isna().mean().round(3)[["limited", "chronic"]])

# %%
# A clinic of 300
# ---------------
# Studies are often small. We draw 300 people, and pretend that they are all we have. The other
# 4994 tell us at the end how right we were.
draws = np.random.default_rng(0)
order = draws.permutation(len(table))
ours, others = order[:300], order[300:]
X, target = table.iloc[ours], y.iloc[ours]
print(X.head())

# %%
# A first try that goes wrong
# ---------------------------
# Numbers are imputed and scaled, categories become indicators. A missing category is a level
# of its own (the encoder does that by itself). A level that the training rows do not have is
# treated as the first level.
categories = ["health", "coinsurance", "deductible", "limited"]
numbers = ["chronic", "incentive", "most_paid"]


def columns(imputer):
    return make_column_transformer(
        (make_pipeline(imputer, StandardScaler()), numbers),
        (OneHotEncoder(drop="first", sparse_output=False, handle_unknown="ignore"), categories),
        verbose_feature_names_out=False,
    )


single = make_pipeline(columns(SimpleImputer(add_indicator=True)), bestk.SparseRidge(k=4, alpha=1))
single.fit(X, target)
print(single[-1].result_.names)

# %%
# Two things are wrong. The features have lost their names, because the pipeline passes on arrays.
# And with names we see that the model takes one level of a category without the others:
single.set_output(transform="pandas").fit(X, target)
print(single[-1].result_.names)

# %%
# The right way
# -------------
# ``groups_by_source`` makes a group of all that the pipeline makes of one column: the indicators
# of a category, or a number with the indicator of its missing values. So k counts columns of the
# table, and these are what a clinic has to ask for.
groups = bestk.groups_by_source(table)


def pipeline(last, imputer=None):
    imputer = imputer or SimpleImputer(add_indicator=True)
    return make_pipeline(columns(imputer), last).set_output(transform="pandas")


four = pipeline(bestk.SparseRidge(k=4, alpha=1, groups=groups)).fit(X, target)
print(four[-1].result_)

# %%
# How many columns?
# -----------------
# ``GridSearchCV`` fits the whole pipeline in each fold, so that no held-out row is used by an
# imputer, a scaler or an encoder. The groups are found anew in each fold.
sizes = range(8)
folds = KFold(5, shuffle=True, random_state=0)
squares = "neg_mean_squared_error"
strict = GridSearchCV(
    pipeline(bestk.SparseRidge(alpha=1, groups=groups)),
    {"sparseridge__k": sizes},
    cv=folds,
    scoring=squares,
).fit(X, target)
print(strict.best_params_, strict.best_estimator_[-1].result_.group_names)

# %%
# ``SparseRidgeCV`` as the last step is faster: columns are made once, and one pass over the data
# serves all sizes and folds. Here imputers and scalers have seen the held-out rows. They do not
# look at the target, so this changes little:
quick = pipeline(bestk.SparseRidgeCV(ks=sizes, alphas=[1], cv=folds, groups=groups))
quick.fit(X, target)
inner = quick[-1].cross_validation_
errors = {"GridSearchCV": -strict.cv_results_["mean_test_score"], "SparseRidgeCV": inner.mean[0]}
print(pd.DataFrame(errors, index=pd.Index(sizes, name="k")).round(5))
print(inner.claim)

# %%
# An honest error
# ---------------
# The smallest error of that table is too good: we have chosen it because it was small. Nested
# cross-validation holds out rows from the whole procedure, the choice of k included. These rows
# were seen by nothing, so it is honest about both ways of choosing.


def honest_error(model, X, y):
    scores = cross_validate(model, X, y, cv=5, scoring=squares, return_estimator=True)
    return -scores["test_score"].mean(), scores["estimator"]


def error_of(model, rows):
    return np.mean((y.iloc[rows] - model.predict(table.iloc[rows])) ** 2)


nested, fitted = honest_error(quick, X, target)
print(f"on the rows it was fitted to  {error_of(quick, ours):.3f}")
print(f"cross-validation, best k      {inner.mean.min():.3f}")
print(f"nested cross-validation       {nested:.3f}")
print(f"the other {len(others)} people         {error_of(quick, others):.3f}")
print("sizes chosen in the outer folds:", [model[-1].k_ for model in fitted])

# %%
# The first three figures rise in this order. But all three are about the same 300 people, and
# another 300 would give others. So we draw twelve clinics, and do the same in each:
rows = []
for _ in range(12):
    order = draws.permutation(len(table))
    ours, others = order[:300], order[300:]
    quick.fit(table.iloc[ours], y.iloc[ours])
    rows.append(
        {
            "fitted rows": error_of(quick, ours),
            "best of CV": quick[-1].cross_validation_.mean.min(),
            "nested CV": honest_error(quick, table.iloc[ours], y.iloc[ours])[0],
            "other people": error_of(quick, others),
            "k": quick[-1].k_,
        }
    )
clinics = pd.DataFrame(rows)
means = clinics.mean()
print(means.round(3))
print("honest on average:", abs(means["nested CV"] / means["other people"] - 1) < 0.05)

# %%
# On average the fitted rows promise too much, the best error of the cross-validation still promises
# too much, and nested cross-validation is about right. (Triangles are means.) For one clinic of
# 300, each of these estimates is uncertain by more than what we want to measure. A paper should say
# both.
ax = clinics.drop(columns="k").plot.box(
    figsize=(7.5, 4), showmeans=True, color=bestk.plots.COLOURS[0]
)
ax.set_ylabel("mean squared error of log visits")
ax.set_title("Twelve clinics of 300 people")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How sure is the choice?
# -----------------------
# The whole procedure, from the imputer to the choice of k, is repeated on random halves of our
# first 300 people. A column that nearly all halves choose can be trusted more than the rest.
# (Halves and not bootstrap samples: these repeat people, and copies of a person would be on both
# sides of a fold.)
names = []
for seed in range(25):
    half = resample(X, target, replace=False, n_samples=150, random_state=seed)
    names.append(quick.fit(*half)[-1].result_.group_names)
share = pd.Series({name: np.mean([name in chosen for chosen in names]) for name in table})
everybody = pipeline(bestk.SparseRidge(k=5, alpha=1, groups=groups)).fit(table, y)[-1].result_
share = share.sort_values(ascending=False).to_frame("share of halves")
share["in the best five of all people"] = share.index.isin(everybody.group_names)
print(share)
counts = pd.Series([len(chosen) for chosen in names]).value_counts().sort_index()
print("sizes in halves:", counts.to_dict())

# %%
# Only the index of chronic diseases is a safe choice. Sizes differ widely: the halves have too few
# people to say how many columns are needed.
#
# Does the imputer matter?
# ------------------------
# Another imputer predicts a gap from the other numbers. Which one is better? It is a part of the
# procedure, so nested cross-validation can compare them.
imputers = {
    "mean, and an indicator": SimpleImputer(add_indicator=True),
    "median": SimpleImputer(strategy="median"),
    "iterative, and an indicator": IterativeImputer(random_state=0, add_indicator=True),
}
for name, imputer in imputers.items():
    model = pipeline(bestk.SparseRidgeCV(ks=sizes, alphas=[1], groups=groups), imputer)
    print(f"{name:28} {honest_error(model, X, target)[0]:.4f}")

# %%
# The differences are far smaller than what another 300 people would change, so this is no reason to
# prefer one of them.
#
# What to report
# --------------
# The proof says that no other k columns fit *these rows* better. It does not say that other
# patients would give the same columns, and it does not say how large the error will be for them.
# For that, give the error of nested cross-validation, and how often each column is chosen.
