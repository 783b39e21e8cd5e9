"""Attacks on the command line from outside: kills, damage, full disks, races, hostile files.

`python -m faults` runs all of them and prints how many were tried and how many failed.
"""
