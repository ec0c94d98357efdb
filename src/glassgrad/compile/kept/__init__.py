"""The cache on disk: its location, its owner, and the integrity of its entries.

Input: a name derived from everything that an entry depends on (`files.name_of`). Output: a header and some bytes, or
None.

`files.py` reads, writes and evicts entries; `private.py` refuses folders that another user could have written. The
caches in memory are in `glassgrad/base/kept.py`.
"""
