"""Names in readable programs: the user's own where there are any, made from shapes and ops elsewhere."""
