"""Sends the runs of a verification through LLM.generate; started by invar."""
