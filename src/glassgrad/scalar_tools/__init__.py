"""What `glassgrad.scalar` can do beyond its page: pictures of a graph of Values, and native code from one."""
