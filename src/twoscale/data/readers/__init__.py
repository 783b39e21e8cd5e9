"""Arrays in other people's files, whose claims are checked before anything is read."""

from twoscale.data.readers.pair import open_pair

__all__ = ["open_pair"]
