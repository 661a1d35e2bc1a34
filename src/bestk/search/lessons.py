"""What one search passes on to the next about the same presolved problem."""

from functools import cached_property

from bestk.bounds.cluster_bound import ClusterBound, cluster_bound
from bestk.bounds.split import Split, first_split
from bestk.form.standard_form import StandardForm
from bestk.supports.incumbent import Fits


class Lessons:
    """Fits, the first split and the cluster bound of a form: the same for every k.

    ``clusters_helped`` is what one k learns for the next: did the cluster bound exclude features?
    A path hands one of these from size to size; a single search makes its own.
    """

    def __init__(self, form: StandardForm | None) -> None:
        self._form = form
        self.fits: Fits = {}
        self.clusters_helped = False

    @property
    def form(self) -> StandardForm:
        assert self._form is not None
        return self._form

    @cached_property
    def split(self) -> Split:
        """The first split of the form's matrix."""
        return first_split(self.form)

    @cached_property
    def clusters(self) -> ClusterBound | None:
        """The bound by clusters of the form's features, if there is a useful one."""
        return cluster_bound(self.form, self.split.smallest)
