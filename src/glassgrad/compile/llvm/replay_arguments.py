"""What recorded NumPy calls ask of their arguments (`replay`): kinds, dtypes, shapes, strides, memory of their own."""

from __future__ import annotations

from glassgrad.compile.llvm.products.shares import turns
from glassgrad.compile.llvm.replay_words import Argument, Environment, Head, Kind, load, row

# Behind the address of an array's memory (how many dimensions, their sizes, strides, base, dtype, flags).
_DIMENSIONS, _SHAPE, _STRIDES, _DTYPE, _FLAGS = 8, 16, 24, 40, 48
POINTER_AT = 16  # of a capsule its pointer: NumPy's begins with a mask of how it treats errors
UNDERFLOW_BITS = 7 << 6  # of that mask: 0 if underflow is ignored
_TYPE_AT, _FLOAT_AT = 8, 16  # of an object its type, of a float its number


def text(data: int) -> str:
    """Return ``match``, ``flags`` and what they need; arrays have their address at `data`."""
    return "\n".join([_field(data), _float(), _array(), _match(), _overlaps(), _flags()])


def _field(data: int) -> str:
    """A word of an array, counted from its address."""
    return f"""
define internal i64 @field(ptr %array, i64 %further) #0 {{
  %at = add i64 %further, {data}
  %p = getelementptr i8, ptr %array, i64 %at
  %word = load i64, ptr %p, align 8
  ret i64 %word
}}
define internal i1 @same(ptr %a, ptr %b, i64 %count) #0 {{
entry:
  br label %head
{turns("body", "done")}\
  %a.p = getelementptr i64, ptr %a, i64 %i
  %b.p = getelementptr i64, ptr %b, i64 %i
  %x = load i64, ptr %a.p, align 8
  %y = load i64, ptr %b.p, align 8
  %i.next = add i64 %i, 1
  %equal = icmp eq i64 %x, %y
  br i1 %equal, label %head, label %done
done:
  %result = phi i1 [ true, %head ], [ false, %body ]
  ret i1 %result
}}"""


def _float() -> str:
    """Store a float as a number of the dtype; what would be infinite there is refused."""
    return f"""
define internal i1 @number(ptr %object, ptr %row, ptr %slots, ptr %env, i1 %single) #0 {{
entry:
  %type.p = getelementptr i8, ptr %object, i64 {_TYPE_AT}
  %type = load i64, ptr %type.p, align 8
{load("float", "env", Environment.FLOAT)}{load("slot", "row", Argument.SLOT)}\
  %is.float = icmp eq i64 %type, %float
  br i1 %is.float, label %read, label %no
read:
  %value.p = getelementptr i8, ptr %object, i64 {_FLOAT_AT}
  %value = load double, ptr %value.p, align 8
  %place.p = getelementptr ptr, ptr %slots, i64 %slot
  %place = load ptr, ptr %place.p, align 8
  br i1 %single, label %narrow, label %wide
narrow:
  %low = fcmp ogt double %value, -3.0e38
  %high = fcmp olt double %value, 3.0e38
  %fits = and i1 %low, %high
  %short = fptrunc double %value to float
  store float %short, ptr %place, align 8
  ret i1 %fits
wide:
  store double %value, ptr %place, align 8
  ret i1 true
no:
  ret i1 false
}}"""


def _array() -> str:
    """Tell whether an argument is the array that it has to be; put its address into its slot."""
    return f"""
define internal i1 @array(ptr %object, ptr %row, ptr %slots, i64 %array.type) #0 {{
entry:
  %type.p = getelementptr i8, ptr %object, i64 {_TYPE_AT}
  %type = load i64, ptr %type.p, align 8
  %is.array = icmp eq i64 %type, %array.type
  br i1 %is.array, label %look, label %no
look:
{load("what", "row", Argument.WHAT)}{load("dimensions", "row", Argument.DIMENSIONS)}\
{load("shape", "row", Argument.SHAPE, "ptr")}\
{load("strides", "row", Argument.STRIDES, "ptr")}{load("flags", "row", Argument.FLAGS)}\
{load("slot", "row", Argument.SLOT)}\
  %dtype = call i64 @field(ptr %object, i64 {_DTYPE})
  %own.dimensions.whole = call i64 @field(ptr %object, i64 {_DIMENSIONS})
  %own.dimensions = and i64 %own.dimensions.whole, 4294967295
  %own.flags = call i64 @field(ptr %object, i64 {_FLAGS})
  %flags.set = and i64 %own.flags, %flags
  %dtype.ok = icmp eq i64 %dtype, %what
  %dimensions.ok = icmp eq i64 %own.dimensions, %dimensions
  %flags.ok = icmp eq i64 %flags.set, %flags
  %ok.a = and i1 %dtype.ok, %dimensions.ok
  %ok.b = and i1 %ok.a, %flags.ok
  br i1 %ok.b, label %sizes, label %no
sizes:
  %own.shape.word = call i64 @field(ptr %object, i64 {_SHAPE})
  %own.shape = inttoptr i64 %own.shape.word to ptr
  %shape.ok = call i1 @same(ptr %own.shape, ptr %shape, i64 %dimensions)
  %own.strides.word = call i64 @field(ptr %object, i64 {_STRIDES})
  %own.strides = inttoptr i64 %own.strides.word to ptr
  %strides.ok = call i1 @same(ptr %own.strides, ptr %strides, i64 %dimensions)
  %all.ok = and i1 %shape.ok, %strides.ok
  %memory = call i64 @field(ptr %object, i64 0)
  %place = getelementptr i64, ptr %slots, i64 %slot
  store i64 %memory, ptr %place, align 8
  ret i1 %all.ok
no:
  ret i1 false
}}"""


def _match() -> str:
    """Tell whether the arguments are of the kind that the record was made with; put their addresses into slots."""
    return f"""
define internal i1 @match(ptr %record, ptr %given, i64 %given.count, ptr %env) #0 {{
entry:
{load("count", "record", Head.ARGUMENT_COUNT)}{load("rows", "record", Head.ARGUMENTS, "ptr")}\
{load("slots", "record", Head.SLOTS, "ptr")}{load("array.type", "env", Environment.ARRAY)}\
  %as.many = icmp eq i64 %count, %given.count
  br i1 %as.many, label %head, label %no
{turns("next", "yes")}\
{row("argument")}{load("kind", "row", Argument.KIND)}{load("what", "row", Argument.WHAT)}\
  %object.p = getelementptr ptr, ptr %given, i64 %i
  %object = load ptr, ptr %object.p, align 8
  switch i64 %kind, label %array [ i64 {int(Kind.SAME)}, label %object.same
    i64 {int(Kind.SINGLE)}, label %single  i64 {int(Kind.DOUBLE)}, label %double  i64 {int(Kind.OTHER)}, label %other ]
other:
  %other.type.p = getelementptr i8, ptr %object, i64 {_TYPE_AT}
  %other.type = load i64, ptr %other.type.p, align 8
  %other.ok = icmp ne i64 %other.type, %array.type
  br i1 %other.ok, label %next, label %no
object.same:
  %address = ptrtoint ptr %object to i64
  %is.same = icmp eq i64 %address, %what
  br i1 %is.same, label %next, label %no
single:
  %single.ok = call i1 @number(ptr %object, ptr %row, ptr %slots, ptr %env, i1 true)
  br i1 %single.ok, label %next, label %no
double:
  %double.ok = call i1 @number(ptr %object, ptr %row, ptr %slots, ptr %env, i1 false)
  br i1 %double.ok, label %next, label %no
array:
  %array.ok = call i1 @array(ptr %object, ptr %row, ptr %slots, i64 %array.type)
  br i1 %array.ok, label %next, label %no
next:
  %i.next = add i64 %i, 1
  br label %head
yes:
  %overlap = call i1 @overlaps(ptr %rows, ptr %slots, i64 %count)
  %apart = xor i1 %overlap, true
  ret i1 %apart
no:
  ret i1 false
}}"""


def _overlaps() -> str:
    """Tell whether an array that is written to shares memory with another argument."""
    inner = f"""  %j.at = mul i64 %j, {len(Argument)}
  %other = getelementptr i64, ptr %rows, i64 %j.at
{load("other.kind", "other", Argument.KIND)}{load("other.bytes", "other", Argument.BYTES)}\
{load("other.slot", "other", Argument.SLOT)}\
  %other.is.array = icmp ule i64 %other.kind, {int(Kind.WRITTEN)}
  %differs = icmp ne i64 %i, %j
  %counts = and i1 %other.is.array, %differs
  %other.place = getelementptr i64, ptr %slots, i64 %other.slot
  %other.start = load i64, ptr %other.place, align 8
  %other.end = add i64 %other.start, %other.bytes
  %begins = icmp ult i64 %other.start, %end
  %lasts = icmp ult i64 %start, %other.end
  %meets = and i1 %begins, %lasts
  %bad = and i1 %meets, %counts
  %j.next = add i64 %j, 1
"""
    return f"""
define internal i1 @overlaps(ptr %rows, ptr %slots, i64 %count) #0 {{
entry:
  br label %head
{turns("next", "no")}\
{row("argument")}{load("kind", "row", Argument.KIND)}{load("bytes", "row", Argument.BYTES)}\
{load("slot", "row", Argument.SLOT)}\
  %written = icmp eq i64 %kind, {int(Kind.WRITTEN)}
  %place = getelementptr i64, ptr %slots, i64 %slot
  %start = load i64, ptr %place, align 8
  %end = add i64 %start, %bytes
  br i1 %written, label %inner, label %next
inner:
  %j = phi i64 [ 0, %body ], [ %j.next, %inner.one ]
  %j.more = icmp slt i64 %j, %count
  br i1 %j.more, label %inner.one, label %next
inner.one:
{inner}  br i1 %bad, label %yes, label %inner
next:
  %i.next = add i64 %i, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}"""


def _flags() -> str:
    """The processor's flags that NumPy would look at: of underflow only where it is told to."""
    return f"""
define internal i32 @flags(ptr %env) #0 {{
entry:
  %found.p = alloca ptr, align 8
{load("get", "env", Environment.GET_CONTEXT, "ptr")}{load("variable", "env", Environment.VARIABLE, "ptr")}\
{load("always", "env", Environment.FLAGS)}{load("under", "env", Environment.UNDERFLOW)}\
{load("forget", "env", Environment.FORGET, "ptr")}\
  %few = trunc i64 %always to i32
  %both = or i64 %always, %under
  %all = trunc i64 %both to i32
  store ptr null, ptr %found.p, align 8
  %failed = call i32 %get(ptr %variable, ptr null, ptr %found.p)
  %found = load ptr, ptr %found.p, align 8
  %none = icmp eq ptr %found, null
  br i1 %none, label %unknown, label %read
read:
  %pointer.p = getelementptr i8, ptr %found, i64 {POINTER_AT}
  %pointer = load ptr, ptr %pointer.p, align 8
  %mask = load i32, ptr %pointer, align 4
  %treated = and i32 %mask, {UNDERFLOW_BITS}
  %ignored = icmp eq i32 %treated, 0
  call void %forget(ptr %found)
  %result = select i1 %ignored, i32 %few, i32 %all
  ret i32 %result
unknown:
  ret i32 %all
}}"""
