"""How stable is the choice of features? The best model of many resamples, each with its proof."""

from bestk.selection.stability.result import ChosenSupport, Stability
from bestk.selection.stability.run import stability

__all__ = ["ChosenSupport", "Stability", "stability"]
