"""The paper's studies, published numbers, benchmarks, and what makes the documents."""
