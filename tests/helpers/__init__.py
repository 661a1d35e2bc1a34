"""What tests share: instances, proofs, checks, and what is forced upon the package."""
