"""Fields as sources: arrays of users, chunks and ranges, and who works on them."""
