"""Arrays in other people's files, whose claims are checked before anything is read."""
