"""Real data for the estimators."""

import pytest
from sklearn.datasets import load_diabetes


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)
