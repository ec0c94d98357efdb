"""What a model is beside its calls: its normalisations and dropouts, tensors that are no parameters, copies, loads.

In: the model, and the user's files for lines. Out: facts for `Parts`.
"""
