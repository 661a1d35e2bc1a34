"""All models that are nearly as good as the best, proven to be all."""
