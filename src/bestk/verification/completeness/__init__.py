"""Is a list of models complete? Checked on the data, with none of the code that made it.

For every size a tree covers all supports. Each leaf is proven not to be below the threshold, or
tried support by support, but for what contains a support of the list. So no support is below the
threshold that does not contain one of the list, and the models of the list are evaluated on the
data. That the supports of the list are irreducible follows: a smaller one below the threshold would
have to contain a listed one itself.

Or one tree shows which supports of k features are below the threshold. Any smaller one is a part of
these, so the largest parts without a listed support are bounded one by one.
"""

from bestk.verification.completeness.check import ListVerification
from bestk.verification.completeness.verify import (
    verify_list,
    verify_list_batches,
    verify_list_gram,
)

__all__ = ["ListVerification", "verify_list", "verify_list_batches", "verify_list_gram"]
