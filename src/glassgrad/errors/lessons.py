"""Messages about lessons and exercises; one line each, which the command line prints as `error: ...`."""

from __future__ import annotations

from glassgrad.errors.kinds import Message
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
