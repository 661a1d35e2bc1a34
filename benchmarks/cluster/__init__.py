"""What a cluster adds: the same searches on workers, sums of files, how far it would scale."""
