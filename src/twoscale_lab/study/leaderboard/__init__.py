"""Other people's problems, the errors that they published, and ours beside them."""
