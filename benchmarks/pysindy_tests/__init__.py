"""PySINDy's own tests, with OKRidge in the place of PySINDy's optimizers."""
