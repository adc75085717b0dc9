"""Builds a wheel in the Python that will use it. Nothing is fetched."""
