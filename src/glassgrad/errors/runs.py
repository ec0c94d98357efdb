"""Messages about data files, configurations, runs and the command line."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, GlassgradError, Message

# One line each: the command line prints them as `error: ...`.


class InputError(GlassgradError, ValueError):
    """A file, an option or a run directory that the user gave cannot be used."""


class RunError(GlassgradError, RuntimeError):
    """A training run cannot continue or cannot be saved."""


WORDS_EMPTY = Message(InputError, "{path} holds no words; expected one word per line")
WORDS_TAB = Message(InputError, "line {line} of {path} holds a tab; expected one word per line, not a table")
WORDS_LONG_LINE = Message(
    InputError, "line {line} of {path} has {length:,} characters, more than {limit:,}; expected one word per line"
)
WORDS_TOO_FEW = Message(
    InputError,
    "{path} holds {count}; at least {least} words are needed to set some aside for validation and test",
)
CONFIG_UNKNOWN_KEY = Message(InputError, "unknown key {key!r} in {source}{nearest}")
CONFIG_NOT_TOML = Message(InputError, "{source} is not valid TOML: {reason}")
CONFIG_UNREADABLE = Message(InputError, "cannot read {source}: {reason}")
CONFIG_WRONG_TYPE = Message(InputError, "{name} must be {expected}, given {given}")
CONFIG_OUT_OF_RANGE = Message(InputError, "{name} must be {expected}, given {given}")
CONFIG_WRONG_CHOICE = Message(InputError, "{name} must be {expected}, given {given}{nearest}")
CONFIG_NO_EFFECT = Message(InputError, "{name} has no effect on the model {model!r}; leave it out")
CONFIG_BATCH_NORM = Message(
    InputError,
    "{name} must be at least 2 for the model {model!r} (batch normalisation needs two examples), given {given}",
)
CONFIG_TASK = Message(
    InputError, "{source} is for `glassgrad train {found}`, expected one for `glassgrad train {expected}`"
)
OPTION_UNKNOWN = Message(InputError, "unknown option {given}{nearest}")
OPTIONS_EXCLUDE = Message(InputError, "{first} and {second} cannot be given together: {reason}")

RUN_EXISTS = Message(
    InputError, "{path} already holds a run; continue it with --resume {path}, or give another --run-dir"
)
RUN_NOT_EMPTY = Message(InputError, "{path} exists and is not an empty directory; give another --run-dir")
RUN_NOT_WRITABLE = Message(InputError, "cannot make the run directory {path}: {reason}")
RUN_MISSING = Message(InputError, "no run at {path}: {reason}")
RUNS_FOLDER = Message(InputError, "cannot list the runs of {path}: {reason}")
LIVE_PORT = Message(InputError, "cannot serve on port {port}: {reason}")
REPORT_NO_RUNS = Message(InputError, "{owner}: no runs to report on; name at least one run directory")
REPORT_NOT_WRITTEN = Message(InputError, "cannot write the report {path}: {reason}")
PAGE_NOT_WRITTEN = Message(InputError, "cannot write the page {path}: {reason}")
GRAPH_BY_HAND = Message(InputError, "no graph of a step: {run} is trained by hand-written rules, which record none")
GRAPH_NOT_TRACED = Message(InputError, "no graph of a step of {run}: {reason}")
GRAPH_OF_NO_TASK = Message(
    InputError, "no graph of a step: {run} was not made by glassgrad train; its trainer.report() can draw one"
)
FIGURE_FORMAT = Message(ArgumentError, "write_figures: format={given!r}, expected one of: {known}.")
FIGURE_NOT_WRITTEN = Message(InputError, "cannot write figures to {path}: {reason}")
REPORT_NO_DIRECTORY = Message(
    InputError,
    "{owner}: a report is made from a run directory, and this run keeps none; train with TrainingConfig(run_dir=...)",
)
RUN_LOCKED = Message(InputError, "{path} is being trained by another process")
RUN_FOREIGN = Message(InputError, "{path} was not written by glassgrad's training: it has no description of a run")
RUN_FILE = Message(InputError, "{path} holds no weights; give the directory of a run, or its model.safetensors instead")
RUN_DAMAGED = Message(InputError, "{path} is damaged: {reason}")
RUN_NEWER = Message(
    InputError,
    "{path} was written by a newer glassgrad, in format {given}; this version reads up to format {most}: update glassgrad",
)
RUN_CHANGED = Message(
    InputError, "{name} of a run cannot change: it began with {before}, given {after}; start a new run instead"
)
RUN_SHORTENED = Message(
    InputError, "{name} of a run can only grow: it began with {before}, given {after}; start a new run instead"
)
RUN_OTHER_DATA = Message(
    InputError, "{path} does not hold the {what} with which this run began; give that file with --data"
)

RUN_NOT_SAVED = Message(RunError, "cannot save {path}: {reason}{kept}")
RUN_DIVERGED = Message(
    RunError, "the loss became {value} at step {step:,}; try a smaller learning rate than {rate:g}{kept}"
)
RUN_GREW = Message(
    RunError,
    "the loss is {value:.4g} at step {step:,} and was {first:.4g} at the first: it stayed that high over {count} records, so "
    "the run was ended; try a smaller learning rate than {rate:g}{kept}",
)
RUN_ENDED_DIVERGED = Message(
    RunError,
    "after the last step the {name} is {value}: the weights are unusable; try a smaller --rate than {rate:g}"
    " (the run's checkpoint of step {step:,} in {path} is unchanged)",
)

RUN_ONLY_SKIPS = Message(
    RunError,
    "the gradients of {count} steps in a row were not finite, so no step was taken; look for NaN in the data or in "
    "the model's outputs (skip_nonfinite=False stops at the first), or try a smaller learning rate",
)
FIT_EMPTY_LOADER = Message(
    InputError,
    "{what} gives no batches: {reason}; with drop_last=True a batch_size above the number of examples leaves none",
)
FIT_DATA_NOT_FINITE = Message(
    InputError,
    "batch {batch} of epoch {epoch} holds {value} in part {part} at [{index}] ({count:,} of {size:,} numbers are not "
    "finite); no step was taken on it. Clean the data, or train on it unchanged with TrainingConfig(check_data=False)",
)
FIT_NO_SUCH_MEASURE = Message(
    InputError, "the validation measures {known}, not {given!r}; set `monitor` to one of the measures"
)
FIT_NEEDS_VALIDATION = Message(InputError, "{option} needs a val_loader: without one nothing is measured")
FIT_NEEDS_STEPS = Message(
    InputError, "{what} does not know its length; give the number of steps with TrainingConfig(steps=...)"
)
FIT_WRONG_KIND = Message(InputError, "{owner}: {name} must be {expected}, given {given}")
FIT_CONTRADICTS = Message(
    InputError,
    "Trainer: the configuration has {option}, but the {part} given has {found}; make it by config.{maker}, or leave the "
    "option out",
)
CONFIG_NOT_SET = Message(InputError, "{owner}.{name} is not set; add {example} to the file, or give --{flag}")
FIT_BY_HAND = Message(
    InputError,
    "Trainer: {option} needs the engine, which hand-written layers do not use; leave it out, or train a glassgrad.nn module",
)
FIT_BATCH = Message(
    InputError,
    "the loader's batches are {given}, which give loss_fn no targets; give batches of "
    "(inputs, targets), or loss_fn=None and a model that returns its loss",
)
FIT_RUN_EXISTS = Message(
    InputError, "{path} already holds a run; continue it with fit(resume=True), or give another run_dir"
)
CHECKPOINT_OTHER_MODEL = Message(
    InputError, "{path} holds another model; nothing was loaded.{missing}{unexpected}{wrong}"
)
RATES_RANGE = Message(
    InputError, "find_rate: rates from {low} to {high} in {steps} steps; expected 0 < low < high and at least 10 steps"
)
CHECKPOINT_PARTS = Message(
    InputError, "{path} holds {given}, not {expected}; give Checkpoint the parts it was saved with"
)
CHECKPOINT_OTHER_KIND = Message(
    InputError,
    "{path} does not fit {name!r}; nothing was loaded. Its {what}: {given}; expected: {expected}. Build the parts as they "
    "were built when it was saved",
)
CHECKPOINT_PART_UNFIT = Message(
    InputError,
    "{path} does not fit {name!r}; nothing was loaded: {reason}. Build the parts as they were when it was saved",
)
LOGGER_MISSING = Message(InputError, "log_to={name!r} needs {package}, which is not installed: pip install {package}")
LOGGER_UNKNOWN = Message(InputError, "log_to: there is no {given!r}; expected some of {known}{nearest}")
LOGGER_NEEDS_DIRECTORY = Message(InputError, "log_to={name!r} writes files; give a run_dir for them")
ACCURACY_SHAPES = Message(
    ArgumentError,
    "accuracy: outputs of shape {given} and targets of shape {labels} do not match ({where}).\n"
    "Expected: outputs (n, classes) and targets (n,); with more dimensions (n, classes, ...) and (n, ...).",
)
CALLBACK_EVERY = Message(InputError, "{owner}.every must be a whole number of at least 1, given {given!r}")
CALLBACK_NO_GRADIENTS = Message(
    RunError,
    "`run.gradients()` has none to show: {reason}",
)

# --- images ---

IDX_UNREADABLE = Message(InputError, "cannot read {path}: {reason}")
IDX_GZIP = Message(InputError, "{path} is gzipped but cannot be unpacked: {reason}; fetch it again")
IDX_FOREIGN = Message(
    InputError, "{path} is not the idx file expected here: it begins with {given}, expected {expected}"
)
IDX_LENGTH = Message(InputError, "{path} is {fault}: {given:,} bytes, expected {expected}; fetch it again")
IDX_MISMATCH = Message(
    InputError, "{images} holds {count:,} images but {labels} {other:,} labels; expected a label for every image"
)
IDX_EMPTY = Message(InputError, "{path} holds no images")
IDX_LABEL = Message(InputError, "{path} has label {given} at place {place:,}; expected 0 to {last}")
IDX_FOLDER = Message(
    InputError,
    "no MNIST in {path}: {reason}; expected a directory with train-images-idx3-ubyte, train-labels-idx1-ubyte and the "
    "two t10k files, gzipped or not, or the files of one part only",
)
IDX_SIZES = Message(InputError, "the images in {path} differ in size: {train} to train on, {test} to test on")
IDX_TOO_FEW = Message(
    InputError, "{path} holds {count} images; at least {least} are needed to set some aside for testing"
)
DIGITS_NOT_FOUND = Message(
    InputError,
    "no digits in {path}: {reason}; expected a directory with pictures in subfolders 0 to 9, or a .npz file with images and "
    "labels, or with x_train, y_train, x_test and y_test",
)
DIGITS_SHAPES = Message(
    InputError,
    "{path} holds images {images} and labels {labels}; expected grey images (n, height, width) and n whole numbers",
)
DIGITS_RANGE = Message(
    InputError, "the images in {path} hold negative numbers, NaN or inf; expected 0 for the background"
)
IMAGES_BATCH = Message(InputError, "{name} must be at most the {count:,} training images, given {given:,}")
IMAGES_SMALL = Message(InputError, "images of {size} are too small for the model 'cnn', which needs at least 4 x 4")
RUN_OTHER_IMAGES = Message(
    InputError, "{path} does not hold the images with which this run began; give their folder with --data"
)
FETCH_FAILED = Message(
    InputError,
    "cannot fetch {name} ({complaints}); without a network, put MNIST's four files into a folder and give it with "
    "--data, or use `glassgrad train digits`, which needs none",
)
FETCH_NOT_STORED = Message(InputError, "cannot store {path}: {reason}; set XDG_CACHE_HOME to another folder")
