"""What a run found and proved, as plain data: result, certificate, files."""
