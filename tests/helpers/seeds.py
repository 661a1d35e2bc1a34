"""Seeds as parameters, one by one or many to an item; a failure names the seed either way."""

import inspect
from functools import wraps

import pytest


def seeds(count: int, *, start: int = 0, chunk: int = 1):
    """Run a test for `count` seeds; `chunk` of them are one item, where they are many and quick."""
    every = range(start, start + count)
    if chunk == 1:
        return pytest.mark.parametrize("seed", every)
    parts = [every[i : i + chunk] for i in range(0, count, chunk)]

    def decorate(test):
        @wraps(test)
        def run(seeds, **others):
            for seed in seeds:
                try:
                    test(seed=seed, **others)
                except Exception as error:
                    error.add_note(f"seed {seed}")
                    raise

        signature = inspect.signature(test)
        names = [name for name in signature.parameters if name != "seed"]
        parameters = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names]
        first = inspect.Parameter("seeds", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = signature.replace(parameters=[first, *parameters])
        ids = [f"seeds {part[0]}-{part[-1]}" for part in parts]
        return pytest.mark.parametrize("seeds", parts, ids=ids)(run)

    return decorate
