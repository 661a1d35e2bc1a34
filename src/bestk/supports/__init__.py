"""Sets of features: good ones by beam search, all of them by enumeration, the best one so far."""
