"""Tools for `glassgrad.scalar`: pictures of a graph of Values, and native code from one."""
