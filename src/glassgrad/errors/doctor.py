"""Messages about watching gradients: monitors, check-ups and their pictures."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, AutogradError, GlassgradError, KindError, Message
from glassgrad.errors.runs import InputError

MONITOR_MODEL = Message(
    KindError,
    "{owner} expects a model with named_parameters(), such as an nn.Module of glassgrad or PyTorch; given {given}.",
)
MONITOR_NO_PARAMETERS = Message(ArgumentError, "{owner}: {model} has no parameters, so there is nothing to watch.")
MONITOR_EVERY = Message(ArgumentError, "{name} must be a whole number of at least {low}, given {given}.")
MONITOR_NO_GRADIENTS = Message(
    GlassgradError,
    "monitor.update() found no gradient on any parameter of {model} in step {step}.\n"
    "Next: call it after loss.backward() and before optimizer.zero_grad(); a step compiled with keep_grads=False keeps no "
    "gradients: use monitor.observe(lambda: loss of this batch) before it.",
)
MONITOR_ORDER = Message(
    GlassgradError,
    "monitor.update_after_clip() came before monitor.update() in step {step}.\n"
    "Next: backward, update(), clip the gradients, update_after_clip(), optimizer.step().",
)
MONITOR_OTHER_MODEL = Message(
    InputError,
    "{path} was recorded with another model: {reason}.\nNext: give another path, or start=0 to overwrite the file.",
)
MONITOR_UNREADABLE = Message(InputError, "cannot read {path}: {reason}")
MONITOR_FOREIGN = Message(InputError, "{path} is not a record of gradients that this version of glassgrad reads")
PICTURE_SOURCE = Message(
    KindError,
    "{owner} draws a GradientMonitor, its data, a file that it wrote, or a model with gradients; given {given}.",
)
PICTURE_EMPTY = Message(
    ArgumentError,
    "{owner}: there is nothing to draw, {reason}.\nNext: {next}.",
)
PICTURE_NAMES = Message(ArgumentError, "{owner}: no {what} is called {given!r}; there are {known}.")
NAN_ALLOW = Message(
    ArgumentError,
    "allow: {given!r} is neither an op nor a module of the model; its modules: {modules}.\n"
    'Next: name an op as reports do ("masked_fill", "where"), a module by its path, or put the lines into '
    "`with doctor.allow_nonfinite():`.",
)
NAN_IN_STEP = Message(AutogradError, "step {step}: {rule}: {what}.\n{kept}\nNext: {advice}")
WATCH_NAN = Message(
    KindError,
    "watch(nan=True) guards only modules of glassgrad or PyTorch, given hand-written layers, {given}.\n"
    "Next: watch them with doctor.watch(model, optimizer), without nan=True.",
)
CHECK_BATCH = Message(
    KindError,
    "A batch to check is (inputs, targets), of tensors or arrays, or a mapping of the model's keywords; {given}.\n"
    "Next: {remedy}",
)
CHECK_TARGETS = Message(
    ArgumentError,
    "The batch holds only inputs (given {given}), but the loss function is called with the output and targets.\n"
    "Next: give (inputs, targets), or (inputs, None) for a loss that uses only the output.",
)
WATCH_PRESET = Message(ArgumentError, "watch: no preset is called {given!r}; there are {known}.")
WATCH_OPTIMIZER = Message(
    KindError,
    "watch expects the optimizer that trains {model}, of the same library, or a list of them; given {given}.\n"
    "Next: doctor.watch(model, optimizer), or doctor.watch(model) without an optimizer.",
)
WATCH_HELD_OUT = Message(
    KindError, "held_out expects the loss of held-out examples as one number; given {given}. Next: take its mean()."
)
DOCTOR_NO_SCRIPT = Message(InputError, "there is no script {path}")
DOCTOR_NAN_RUN = Message(
    InputError, "{path} is a recorded run, and --nan checks steps while they run. Next: give the script."
)
MONITOR_LOGGER = Message(
    KindError,
    "log_stats expects a logger with add_scalar, log_metrics, log, write or info, or a function of (name, value, step); "
    "given {given}.",
)
BISECT_NOTHING = Message(
    KindError,
    "bisect saw nothing to compare in {runs}: no op on tensors, and no tensor or number returned.\n"
    "Next: give it functions that compute with glassgrad or PyTorch, on variables or arguments that they name.",
)
LINT_NOTHING = Message(
    InputError, "glassgrad lint expects scripts, notebooks or folders.\nNext: glassgrad lint {example}"
)
LINT_NO_FILE = Message(InputError, "there is no file or folder {path}")
LINT_NO_SCRIPT = Message(InputError, "{path} is no script: its name ends neither in .py nor in .ipynb")
LINT_NO_NOTEBOOK = Message(InputError, "not readable as a notebook: it has no list of {missing}")
LINT_NO_RULE = Message(InputError, "no rule is called {name!r}. {near}")
LINT_UNREADABLE = Message(InputError, "{path}:{line}:{column}: not readable as Python: {reason}")
DOCTOR_DEEPER_RUN = Message(
    InputError,
    "{path} is a recorded run, and --deeper makes experiments with the model of a script. Next: give the script.",
)
