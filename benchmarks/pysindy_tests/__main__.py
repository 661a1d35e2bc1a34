"""PySINDy's own tests, as they are and with bestk.sindy.OKRidge as the optimizer.

python -m benchmarks.pysindy_tests             ten minutes, most of them to set up and compile
python -m benchmarks.pysindy_tests --quick     without the slow tests of SBR
"""

from .study import PySINDyTests

PySINDyTests().main(__doc__)
