"""Every polynomial flow of dysts: whose equations are found, and are they unique?"""
