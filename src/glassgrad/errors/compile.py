"""Messages about tracing and compiling a step."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, FileError, GlassgradError, KindError, Message


class CompileError(GlassgradError, RuntimeError):
    """A function cannot be compiled as written; raised with `strict=True`, before anything is changed."""


class CompileWarning(UserWarning):
    """Compiled code is slower than it could be or is not used; the results are the same."""


TRACED_VALUE = Message(
    CompileError,
    "{call} at {where} needs the values of {what}, but the function is being traced to compile it: values exist "
    "only when it runs.{origin}\nNext: {advice}",
)
TRACED_SHAPE = Message(
    CompileError,
    "{call} at {where} gives a shape that depends on the values of {what}; a compiled function has fixed shapes.{origin}\n"
    "Next: {advice}",
)
TRACED_NUMPY = Message(
    CompileError,
    "{call} at {where} was given {what}, which has no values while its function is traced for compilation.{origin}\n"
    "Next: use glassgrad's own function or the tensor's method, or compute it outside of the compiled function.",
)
TRACE_OVER = Message(
    CompileError,
    "{what} belongs to a finished trace of a compiled function and has no values ({where}).{origin}\n"
    "Next: return it from the compiled function, or write it into an existing tensor with copy_().",
)
TRACE_STORED = Message(
    CompileError,
    "{what} outlives the compiled function that computes it: it was stored in {holder}. Later calls would not "
    "update it there.{origin}\nNext: return it from the function, or write it into an existing tensor with copy_().",
)
TRACE_STORED_KIND = Message(
    CompileError,
    "the function stores a {kind} that it created ({where}); a compiled function can store only tensors and buffers.\n"
    "Next: create the {kind} once, outside of the function, and write into it with copy_().",
)
TRACE_VIEW_WRITE = Message(
    CompileError,
    "the in-place write at {where} goes to {what}, a {op} of another tensor, which a compiled function cannot "
    "express.\nNext: write it out of place, x = where(mask, value, x) or x = x + ..., on the tensor itself.",
)
TRACE_WRITE_SHAPE = Message(
    CompileError,
    "the in-place write at {where} puts {given} into {what}, which is {expected}.\n"
    "Next: write it out of place (x = x + ...), or convert the value first.",
)
TRACE_STATE_CHANGED = Message(
    CompileError,
    "{what} was {before} when the compiled function began and is {after} when it ends; state keeps its shape and dtype, "
    "since it is written back in place.\nNext: return the new tensor instead of assigning it to .data.",
)
TRACE_OVERLAP = Message(
    CompileError,
    "{first} and {second} lie in the same memory and the compiled function writes to {written}; as separate inputs they "
    "would diverge.\nNext: keep one tensor and take the views inside of the function.",
)
TRACE_ARRAY_WRITE = Message(
    CompileError,
    "the function writes to a NumPy array at {where} while it is traced; the write would happen once instead of in "
    "every call.\nNext: keep the numbers in a tensor (gg.from_numpy shares the memory), which is state of a compiled function.",
)
TRACE_FREEZE = Message(
    CompileError,
    "gc.freeze() hid {count} objects while the function was traced; new objects can no longer be distinguished from "
    "older ones.\nNext: call gc.freeze() before the first call of the compiled function, or after it.",
)
TRACE_RANDOM = Message(
    CompileError,
    "the function drew from {what} while it was traced; the numbers would be the same in every call.\n"
    "Next: draw with a glassgrad Generator (gg.rand, gg.randint, gg.randperm, ...), or pass the numbers as an argument.",
)
TRACE_TOO_MUCH = Message(
    CompileError,
    "the function reaches more than {limit} functions, most of them in {files}; glassgrad cannot check before every call "
    "whether the state that they read has changed.\nNext: call that library outside of the compiled function, and pass its results.",
)

TRACE_ITERATOR = Message(
    CompileError,
    "the function takes the next element of {what}, a {kind}, at {where}; a compiled call would get the same element every "
    "time.\nNext: take it outside of the function and pass it as an argument.",
)
TRACE_RANDOM_CALL = Message(
    CompileError,
    "{call} at {where} cannot be drawn anew in each call of a compiled function, because its arguments are being traced.\n"
    "Next: draw gg.rand or gg.randn and compute from them, or draw outside and pass the result.",
)
TRACE_NUMBER_CHANGED = Message(
    CompileError,
    "the function itself changed the option {name!r} from {before} to {after} while it was traced; a compiled function "
    "does not run that Python code again.\nNext: call the scheduler (or set {name!r}) outside of the compiled function, after calling it.",
)
COMPILE_NOT_CALLABLE = Message(KindError, "compile() expects a function, given {kind} ({where}).")
COMPILE_BACKEND = Message(
    ArgumentError, "compile: backend={given!r} is not possible ({where}).\nExpected: 'auto', 'llvm', 'c' or 'numpy'."
)
COMPILE_RESULT = Message(
    CompileError,
    "the compiled function returned a {kind}{path}; expected tensors, arrays, numbers, None, and tuples, lists and "
    "dictionaries of them.\nNext: return those, and build the {kind} outside.",
)
COMPILE_OUTSIDE_GRAPH = Message(
    CompileError,
    "an argument of the compiled function, {what}, is the result of {op} at {where} and requires a gradient; gradients do "
    "not flow into a compiled function from outside.\nNext: pass {what}.detach(), or compute it inside of the function.",
)
COMPILE_SECOND_ORDER = Message(
    CompileError,
    "create_graph=True is not possible through a compiled function ({where}): its backward pass is already compiled.\n"
    "Next: compute the derivatives inside of the compiled function, or leave it uncompiled.",
)
TOO_MANY_TRACES = Message(
    CompileError,
    "the compiled function was traced {count} times, expected at most {limit}.{reasons}\n"
    "Next: keep the changed values constant, or pass them as tensors.",
)
TRACED_OFTEN = Message(
    CompileWarning,
    "{name} was traced {count} times ({where}), the last time because {reason}; tracing takes much longer than a call.\n"
    "Next: keep the changed values constant, or pass them as tensors; .retraces lists all reasons, and "
    "assert_max_traces(n) turns further traces into an error.",
)
NOT_CALLED_YET = Message(
    CompileError,
    "{what} of a compiled function does not exist before the first call, which traces the function.\nNext: call it once.",
)
COMPILED_DIFFERS = Message(
    CompileError,
    "the compiled function differs from eager mode in {result}: {difference}.\n{culprit}"
    "The state is that of the eager call. Next: use backend='numpy' meanwhile, and report this with the graph.",
)
TRACE_DIFFERS = Message(
    CompileError,
    "Every instruction and the whole graph agree with NumPy; the fault is in the trace, which differs from eager "
    "mode (compile/front).\n",
)
PLAN_DIFFERS = Message(
    CompileError,
    "The trace and each instruction by itself are right; the fault is in the plan: which arrays share memory "
    "(compile/plan/memory.py), the order of the kernels (compile/plan/order.py), their threads (compile/plan/schedule.py), "
    "or what was fused into one kernel (compile/plan/fusion.py, compile/llvm/loops).\n",
)
NUMPY_PROGRAM_DIFFERS = Message(
    CompileError,
    "The trace and each instruction by itself are right; the fault is in the order and the inlining of the NumPy program "
    "(compile/numpy/program.py).\n",
)
STILL_COMPILING = Message(
    CompileWarning,
    "glassgrad: compiling {name}, {instructions} instructions ...",
)
MEMORY_LIMIT = Message(
    CompileWarning,
    "{name} needs {least} bytes between its kernels, more than the {given} of memory=; no smaller plan was found.\n"
    "Next: make the batch smaller, or accumulate the gradients of several smaller batches.",
)
NO_LLVM = Message(
    CompileWarning,
    "the native emitter cannot be used ({reason}); the generated NumPy program runs instead and is slower.",
)
C_INSTEAD = Message(
    CompileWarning,
    "the native emitter cannot be used ({reason}); the machine's C compiler is used instead, so first calls take longer.",
)
CACHE_REFUSED = Message(
    CompileWarning,
    "compiled steps are neither read from nor written to {path}: it {reason}, so others could have put code there.\n"
    "Next: {cure}, or set GLASSGRAD_CACHE_DIR to a folder of your own (leave it empty to switch off cache and warning).",
)
TRACED_EVERY_TIME = Message(
    CompileError,
    "it had to be traced {count} times in a row, the last time because {reason}. Tracing takes much longer than a call.\n"
    "Next: keep changing values in tensors, or change them outside of the compiled function; .retraces lists all reasons.",
)
RUNS_EAGERLY = Message(
    CompileWarning,
    "{name} cannot be compiled and runs eagerly, with the same results: {reason}\n"
    "compile(..., strict=True) raises an error instead.",
)
COMPILER_FAILED = Message(
    CompileError,
    "{reason}\nNext: compile without strict=True, so that it runs eagerly, and please report the function: this is a fault "
    "of the compiler.",
)
NEVER_COMPILED = Message(
    CompileError,
    "there is no {what}: the function runs eagerly, because {reason}",
)
NO_NATIVE_OP = Message(
    CompileWarning,
    "native code for {op} could not be made here ({reason}); eager mode uses NumPy instead, which is slower.\n"
    "Next: set the environment variable GLASSGRAD_NATIVE to 0 to use NumPy from the start, without this warning.",
)
NO_SOURCE = Message(
    CompileError,
    "{op} at {where} has no NumPy source: {reason}.\nNext: call the function without it, or write it in other ops.",
)
SOURCE_NO_LOSS = Message(
    CompileError,
    "backward_source needs a function that returns its loss, a tensor with one element that requires a gradient; it "
    "returned {given}.\nNext: return the loss; or call backward() inside of the function.",
)
SOURCE_GRADIENT = Message(
    CompileError,
    "the gradient of {what} differs from that of the ops of the forward pass: a hook, an autograd.Function or a custom "
    "rule changes it, and backward_source shows none of them.\nNext: compile a function that calls backward(), and "
    "read its .source, which shows the pass that ran; or write the function in ops.",
)
FOREIGN_MODULE = Message(
    CompileError,
    "the PyTorch module holds {what} at {path}, which has no counterpart here.\nExpected: layers of torch.nn that "
    "glassgrad.nn has too, with the same settings, and functions and methods of the same names.",
)
NOT_NATIVE = Message(
    CompileError,
    "there is no LLVM text: the function runs on the backend {backend!r}.\nNext: compile it with backend='llvm'.",
)
LAZY_TRACED = Message(
    CompileError,
    "{layer} gets its parameters from the first input, and a compiled function keeps the shapes of its state ({where}).\n"
    "Next: call the model once, on any input, before the compiled function.",
)
NO_C = Message(
    CompileError,
    "{op} at {where} cannot be written in C: {reason}. Nothing was written.\n"
    "Next: compute it outside of the compiled function and pass the result, or write it in other ops; docs/c_export.md "
    "lists the ops that have C.",
)
NO_C_DRAW = Message(
    CompileError,
    "{name}, drawn by {method}() in {dtype}, cannot be drawn by the written program. Nothing was written.\n"
    "Expected: rand, randn, bernoulli or dropout in float32 or float64, or randint of integers.\n"
    "Next: draw it outside of the compiled function and pass it as an argument.",
)
C_PYTHON_CODE = Message(
    CompileError,
    "every call of the function runs Python code ({what}), which a program in C cannot. Nothing was written.\n"
    "Next: move it out of the compiled function; the written program has the numbers it changes, such as lr, as "
    "members of its struct.",
)
C_OPEN_RESULT = Message(
    CompileError,
    "gradients flow through {name} from outside: a result or an argument requires a gradient. Nothing was written.\n"
    "Next: call backward() and the optimizer inside of the compiled function, or detach what it takes and returns.",
)
C_NOT_WRITTEN = Message(FileError, "the folder {folder} cannot be written: {reason}.")
C_WEIGHTS = Message(ArgumentError, "{path} is not a file of weights (safetensors): {reason}.")
C_STATE = Message(
    ArgumentError,
    "{path} has no array {key!r} of {expected}, so it is not from a program that this function was written as.\n"
    "Nothing was changed.",
)
C_FIRST_CALL = Message(
    CompileError,
    "the first call of {name} made state that the next one finds, and its arguments are gone.\n"
    "Next: call the function once more, then export it.",
)
NO_C_COMPILER = Message(
    CompileError,
    "backend={backend!r} needs a C compiler, and none was found: neither the one that CC names, nor cc, gcc or clang.\n"
    "Next: install one (Debian: apt install gcc; macOS: xcode-select --install), or pip install llvmlite for native code.",
)
C_COMPILER_FAILED = Message(
    CompileError,
    "{compiler} refused the written program: {reason}\nNext: compile with another backend, and please report the function.",
)
