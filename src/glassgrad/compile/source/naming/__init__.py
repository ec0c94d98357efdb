"""Names in readable programs: the user's own names if there are any, otherwise names made from shapes and ops.

In: values with their origins. Out: an identifier for each.

`names.py` hands out identifiers, each once; `hints.py` proposes one for a value without a name; `sizes.py` names
numbers that come from a shape; `rename.py` finally gives similar values the same name; `on_request.py` finds the
user's names of a graph when it is printed.
"""
