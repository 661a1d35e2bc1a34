"""Which method finds the equations of a noisy trajectory?"""
