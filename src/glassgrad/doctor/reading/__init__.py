"""Read training scripts without running them: `glassgrad lint`, and the reading of `glassgrad doctor script.py`.

In: the paths of scripts, notebooks and folders. Out: `Remark`s, each with the name of a rule, a place, and words.
Nothing here imports NumPy, the engine or the script, so that a pre-commit hook starts fast.

| question | file |
|---|---|
| How are files, notebooks and folders read? | `source.py` |
| Which library does a name come from? | `names.py` |
| What do a variable, an attribute and a parameter hold? | `program.py`, `bindings.py` |
| Where does a value come from, through calls, containers and loops? | `flow.py` |
| Which module, optimizer or number does an expression stand for? | `actors.py` |
| Which weights does a backward pass reach, and what cuts it off? | `gradients.py` |
| Which terms does a loss have, with which signs? | `terms.py` |
| What does a mask mark? | `polarity.py` |
| Which layer is called, and which op made a value? | `values.py`, `ranks.py` |
| In which order does an iteration call zero_grad, backward and step? | `iterations.py` |
| What is a rule, and where are its words? | `rule.py`, `errors/reading*.toml` |
| Which rules are there? | the folder `about` |
| What is a node: an operation, a call of a method, a name? | `nodes.py` |
| How does a comment silence a rule? | `silences.py` |
| What does the command do, and what does it print? | `lint.py`, `listing.py` |
| How do the remarks join the findings of a run? | `beside.py` |
"""
