"""Run code in the interpreter of another program: ``python apart.py GIVEN.npz CODE.py LEFT.npz``.

Arrays, numbers and texts of a namespace go over in one file and come back in another; this needs
NumPy of any version, and nothing else.
"""

import sys

import numpy as np


def write(path, namespace):
    """Keep what is plain: arrays of numbers or texts, and what is easily made one."""
    plain = {}
    for name, value in namespace.items():
        if not name.startswith("_") and isinstance(
            value, (np.ndarray, np.generic, bool, int, float, str, list)
        ):
            array = np.asarray(value)
            if array.dtype.kind in "biufU":
                plain[name] = array
    np.savez(path, **plain)


def read(path):
    with np.load(path) as file:
        return {name: file[name] if file[name].ndim else file[name].item() for name in file}


if __name__ == "__main__":
    given, code, left = sys.argv[1:]
    namespace = {"__name__": "__main__", **read(given)}
    with open(code, encoding="utf-8") as file:
        exec(compile(file.read(), code, "exec"), namespace)
    write(left, namespace)
