"""Many searches for one answer: paths, penalties, folds, runners-up, estimators."""
