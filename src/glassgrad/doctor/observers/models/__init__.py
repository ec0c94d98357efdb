"""Facts about a model apart from its calls: normalisations, dropouts, tensors that are not parameters, copies.

In: the model, and the user's files to find lines in. Out: facts for `Parts`.
"""
