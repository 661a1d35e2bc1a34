"""The synthetic study of the paper: which solver proves the best model, and how fast?"""
