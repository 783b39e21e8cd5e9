"""Arrays in other people's files, whose claims are checked before anything is read."""

from twoscale.data.readers.opening import expanded, is_array_file, open_archive

__all__ = ["expanded", "is_array_file", "open_archive"]
