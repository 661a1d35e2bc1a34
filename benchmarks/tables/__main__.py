"""Real tables, plain and with interactions: who proves the best model, and how fast.

    python -m benchmarks.tables                                all tables, sizes and solvers
    python -m benchmarks.tables --tables diabetes --degrees 2  one of them
    python -m benchmarks.tables --solvers bestk --limit 60     bestk alone, with a minute each
    python -m benchmarks.tables --quick                        two small tables, two seconds each

Rows that are closed, or had as much time, are not measured again.
"""

from .study import Tables

Tables().main(__doc__)
