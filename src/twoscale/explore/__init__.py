"""A page to explore surrogates in a browser: paint an input, see the prediction at once."""
