"""The everyday surface: paths over k, and cross-validation."""
