"""Every support of a cell, tried one by one, on processors or a device, with rigorous bounds."""
