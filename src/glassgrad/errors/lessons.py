"""Messages about lessons and exercises; one line each, which the command line prints as `error: ...`."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, Message
from glassgrad.errors.runs import InputError

LESSON_UNKNOWN = Message(InputError, "there is no lesson {given!r}; there are:\n{known}")
LESSON_WHICH = Message(InputError, "{option} is for one {what}; name it, as in `glassgrad {what} 5 {option}`")
LESSON_SEVERAL = Message(InputError, "{given!r} could be more than one lesson:\n{known}")
EXERCISE_UNKNOWN = Message(InputError, "there is no exercise {given!r}; there are:\n{known}")
EXERCISE_STEP = Message(InputError, "exercise {number} has no step {given!r}; its steps are:\n{known}")
EXERCISE_NO_FILE = Message(
    InputError, "there is no file {path} to check; `glassgrad exercise {number}{named}` writes it"
)
EXERCISE_UNREADABLE = Message(InputError, "cannot read {path}: {reason}")
LESSON_FILE_EXISTS = Message(
    InputError, "{path} already exists and was not overwritten; name another file, or move this one away"
)
NOTEBOOK_NAME = Message(InputError, "the name of a notebook ends in .ipynb, given {path}")
LESSON_NOT_WRITTEN = Message(InputError, "cannot write {path}: {reason}")
QUIZ_EMPTY = Message(InputError, "the quiz has no questions on lesson {given}; it has some on {known}")
QUIZ_COUNT = Message(InputError, "--count {given} is a number of questions; give --quiz as well")
PLAYGROUND_NO_RESULT = Message(
    ArgumentError,
    "there is no result to differentiate: no variable is one number that depends on a tensor with requires_grad=True; "
    "call it {name}, or write it in the last line",
)
PLAYGROUND_NOT_AGAIN = Message(
    ArgumentError,
    "{op} at {where} cannot be computed again: it ran inside vmap or a compiled function, or before the two latest "
    "steps of an optimizer",
)
PLAYGROUND_TOO_LONG = Message(
    ArgumentError, "{count} instructions are more than the {limit} that the playground compiles while you type"
)
PLAYGROUND_PANE = Message(InputError, "there is no pane {given!r}; there are {known}")
PLAYGROUND_EXAMPLE = Message(InputError, "there is no example {given!r}; there are {known}")
PLAYGROUND_EXPORT = Message(InputError, "a program is saved as py, ipynb or html, given {given!r}")
PLAYGROUND_FILE = Message(InputError, "cannot open {path}: {reason}")
PLAYGROUND_REQUEST = Message(InputError, "the request does not fit: {what}")
PLAYGROUND_CLOSED = Message(InputError, "the {what} has ended")
