"""Small models of random weights, made without a download."""
