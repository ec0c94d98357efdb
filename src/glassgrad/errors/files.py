"""Messages about text files and about what can be drawn from a model trained on them; one line each."""

from __future__ import annotations

from glassgrad.errors.kinds import Message
from glassgrad.errors.runs import InputError

FILE_MISSING = Message(InputError, "no such file: {path}{nearest}; expected {expected}")
FILE_DIRECTORY = Message(InputError, "{path} is a directory; expected {expected}")
FILE_UNREADABLE = Message(InputError, "cannot read {path}: {reason}")
FILE_BINARY = Message(InputError, "{path} is not a text file ({what} in line {line}); expected {expected} in UTF-8")
FILE_UTF16 = Message(
    InputError, "{path} is UTF-16, expected UTF-8; convert it with: iconv -f UTF-16 -t UTF-8 {path} > utf8.txt"
)
FILE_NOT_UTF8 = Message(
    InputError,
    "{path} is not UTF-8 (byte 0x{byte:02x} in line {line}); if it is Latin-1, convert it with: "
    "iconv -f LATIN1 -t UTF-8 {path} > utf8.txt",
)

TEXT_NOT_GIVEN = Message(
    InputError,
    "no text given, and none comes with glassgrad: give a UTF-8 file with {option}, 100 kB or more, such as a book, or the "
    "English of Python's own manual: "
    """python -c "import pydoc_data.topics as t; print(*t.topics.values())" > manual.txt""",
)
TEXT_EMPTY = Message(InputError, "{path} holds no text; expected {expected}")
TEXT_TOO_SHORT = Message(
    InputError,
    "{path} holds {count:,} characters; at least {least:,} are needed for a context of {context:,}: give more text, or a "
    "smaller --context",
)
ALPHABET_TOO_LARGE = Message(
    InputError,
    "{path} has {count:,} different characters, more than the {limit:,} that a character model accepts",
)

CONFIG_DIVISOR = Message(InputError, "{name} must divide {whole} ({size}), given {given}")
CONFIG_ENGINE = Message(
    InputError,
    "{name} 'manual' has no hand-written backward pass for the model {model!r}, only for {known}; leave it out",
)

CONFIG_DTYPE = Message(
    InputError,
    "{name} {given!r} is not possible with --engine manual, whose hand-written gradients are float32; leave one of "
    "the two out",
)
PROMPT_CHARACTER = Message(
    InputError, "--prompt has {character!r}, which the model has never seen; it knows {alphabet}"
)
SAMPLE_OTHER_MODEL = Message(
    InputError, "{path} holds {what}, which generates no text; `glassgrad sample` draws from runs of {known}"
)
MODEL_OF_NO_TASK = Message(
    InputError, "{path} holds {what}, not the model of a finished `glassgrad train`; its tasks are {known}"
)
PREDICT_NOTHING = Message(InputError, "give the model an input: {expected}")
PREDICT_EMPTY = Message(InputError, "an empty text ({given!r}) has nothing to predict")
PREDICT_CHARACTER = Message(InputError, "the model has never seen {character!r}; it knows {alphabet}")
WORD_TOO_LONG = Message(InputError, "{word!r} has {length} characters; this model reads up to {limit}")
POINT_UNREADABLE = Message(
    InputError, "{given!r} is not a point: expected two numbers such as 0.5,-1, or a file with one point per line"
)
PICTURE_UNREADABLE = Message(InputError, "cannot read {path} as a picture: {reason}")
PICTURE_BLANK = Message(InputError, "{path} has the same brightness everywhere: it shows no digit")
DATA_OTHER_SIZE = Message(InputError, "{path} has images of {given}; the model was trained on {expected}")
DATA_OTHER_ALPHABET = Message(
    InputError,
    "{path} has {given} different characters; the model reads only data with exactly its own, {expected}",
)
EVAL_NO_DATA = Message(
    InputError, "--data has no effect on the task {task}, whose data come with glassgrad; leave it out"
)
EVAL_FILE = Message(InputError, "{path} is a file; `glassgrad eval` needs the run directory, which names the data")
EXPORT_ENDING = Message(InputError, "{path}: the file of --to {to} ends in {ending}")
EXPORT_ITSELF = Message(InputError, "{path} is the model itself; choose another file with --out")
EXPORT_NOT_WRITTEN = Message(InputError, "cannot write {path}: {reason}")
EXPORT_TRAINING = Message(InputError, "--training belongs to --to c; --to {to} writes the model")
EXPORT_NO_STEP = Message(
    InputError, "{path} has made no step yet; train at least one with `glassgrad train {task} --resume {path}`"
)
SAMPLE_CANNOT_BUILD = Message(
    InputError,
    "{path} is intact, but this version of glassgrad does not build its model ({reason}); draw from it with the version that "
    "trained it",
)
SAMPLE_NO_EFFECT = Message(InputError, "{name} has no effect on a model of {task}; leave it out")
