"""What `invar probe` runs inside the Python that is being probed.

Nothing here judges: the modules gather facts and counts, the Go side decides
what they mean. Only torch and the standard library are imported.
"""
