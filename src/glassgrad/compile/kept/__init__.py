"""What lies on the disk for the next process: where, whose it is, and whether it is whole.

In: a name made of all that an entry depends on (`files.name_of`). Out: a header and some bytes, or None.

`files.py` reads, writes and evicts entries; `private.py` refuses folders that somebody else could have written. What a
process keeps in memory is in `glassgrad/base/kept.py`.
"""
