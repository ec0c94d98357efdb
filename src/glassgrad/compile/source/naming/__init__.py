"""Names in readable programs: the user's own where there are any, made from shapes and ops elsewhere.

In: values with their origins. Out: an identifier for each.

`names.py` hands out identifiers, each once; `hints.py` proposes one for a value without a name; `sizes.py` names
numbers that come from a shape; `rename.py` gives alike values the same name at the end; `on_request.py` finds the
user's names of a graph when somebody prints it.
"""
