"""Checks certificates on the data. Shares nothing with the search that made them.

It imports the certificate, the fingerprint and the checks of input, and nothing else of bestk: two
mistakes must not be one.
"""

from bestk.verification.allowance import TooLong
from bestk.verification.verify import Verification, verify, verify_batches, verify_gram

__all__ = ["TooLong", "Verification", "verify", "verify_batches", "verify_gram"]
