"""Messages about data files, configurations, runs and the command line."""

from __future__ import annotations

from glassgrad.errors.kinds import GlassgradError, Message

# One line each: the command line prints them as `error: ...`.


class InputError(GlassgradError, ValueError):
    """Something a user gave cannot be used: a file, an option, a run directory."""


class RunError(GlassgradError, RuntimeError):
    """A training run that had begun cannot go on or cannot be saved."""


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
OPTIONS_EXCLUDE = Message(InputError, "{first} and {second} cannot be given together: {reason}")

RUN_EXISTS = Message(
    InputError, "{path} already holds a run; go on with it by --resume {path}, or give another --run-dir"
)
RUN_NOT_EMPTY = Message(InputError, "{path} exists and is not an empty directory; give another --run-dir")
RUN_NOT_WRITABLE = Message(InputError, "cannot make the run directory {path}: {reason}")
RUN_MISSING = Message(InputError, "no run at {path}: {reason}")
RUN_LOCKED = Message(InputError, "{path} is being trained by another process")
RUN_DAMAGED = Message(InputError, "{path} is damaged: {reason}")
RUN_CHANGED = Message(
    InputError, "{name} of a run cannot change: it began with {before}, given {after}; start a new run instead"
)
RUN_OTHER_WORDS = Message(
    InputError, "{path} does not hold the words this run was begun with; give that file with --data"
)
RUN_OTHER_SHAPES = Message(InputError, "{path} does not fit the model: {reason}")

RUN_NOT_SAVED = Message(RunError, "cannot save {path}: {reason}{kept}")
RUN_DIVERGED = Message(
    RunError, "the loss became {value} between steps {before:,} and {step:,}; try a smaller --rate than {rate:g}{kept}"
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
IMAGES_BATCH = Message(InputError, "{name} must be at most the {count:,} training images, given {given:,}")
IMAGES_SMALL = Message(InputError, "images of {size} are too small for the model 'cnn', which needs at least 4 x 4")
RUN_OTHER_IMAGES = Message(
    InputError, "{path} does not hold the images this run was begun with; give their folder with --data"
)
FETCH_FAILED = Message(
    InputError,
    "cannot fetch {name} ({complaints}); without a network, put MNIST's four files into a folder and give it with "
    "--data, or use `glassgrad train digits`, which needs none",
)
FETCH_NOT_STORED = Message(InputError, "cannot store {path}: {reason}; set XDG_CACHE_HOME to another folder")
