"""Fine-tuning on objectives of the assembled field."""
