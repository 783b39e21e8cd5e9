"""The paper's published numbers, and how ours compare with them."""
