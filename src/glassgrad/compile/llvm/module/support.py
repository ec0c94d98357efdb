"""The native half of the runtime: argument checks, the worker loop, and how threads share a step.

Every executable has a *context*, a block of memory with the header below and one pointer for each array. A step is
a list of phases, and a phase is cut into shares, which do not depend on the number of running threads. A thread
claims a share by a compare-and-swap (its own first, then any that is not started). So a thread that sleeps or is
descheduled between shares delays no other, and the result does not depend on the assignment of shares.
Counters only grow, so nothing is reset between steps and a late worker can join at any time.
"""

from __future__ import annotations

import platform

# Byte offsets in a context. `DONE` and `TARGET` have separate cache lines.
DONE, TARGET, SHARES, PHASES, TABLE, POOL = 0, 64, 128, 136, 144, 152
ARG_COUNT, ARGS, CHECK_COUNT, CHECKS, ARRAY_TYPE, TUPLE_ITEMS, ARRAY_DATA = 160, 168, 176, 184, 192, 200, 208
CLAIMS, CLAIM_SIZE = 256, 64

# An argument record: slot, descriptor object, ndim, pointer to the shape, required flags, elements.
ARG_WORDS = 6
# A check record: slot, number of indices, bytes of an index, the number of allowed values, the least of them, and one
# additional allowed value.
CHECK_WORDS = 6
UNSIGNED = 16  # added to the bytes of an unsigned index

# Byte offsets in the pool.
EPOCH, SLEEPERS, JOB, INSIDE, STOP = 0, 64, 128, 192, 256
POOL_BYTES = 320

BAD_INDEX = 1 << 32
PAGE = 4096  # the smallest page of any system
_SPINS_IN_STEP = 2000
_SPINS_IDLE = 20000
_YIELDS_IDLE = 200


def context_bytes(shares: int, slots: int) -> int:
    """Return the size of a context."""
    return CLAIMS + CLAIM_SIZE * shares + 8 * slots


def slot_offset(shares: int, slot: int) -> int:
    """Return the byte offset of an array's pointer in a context."""
    return CLAIMS + CLAIM_SIZE * shares + 8 * slot


def _pause() -> tuple[str, str]:
    machine = platform.machine().lower()
    if machine in {"x86_64", "amd64"}:
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if machine in {"arm64", "aarch64"}:
        return "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    return "", ""


def _system() -> tuple[str, str, str, str]:
    """Return declarations and the code to yield, to sleep until the epoch changes, and to wake the sleepers."""
    system = platform.system()  # not sys.platform, which a type checker evaluates
    if system == "Linux":
        number = 202 if platform.machine().lower() in {"x86_64", "amd64"} else 98
        call = f"call i64 (i64, ...) @syscall(i64 {number}, ptr %pool"
        return (
            "declare i32 @sched_yield()\ndeclare i64 @syscall(i64, ...)",
            "call i32 @sched_yield()",
            # FUTEX_WAIT and FUTEX_WAKE, private to the process.
            call + ", i32 128, i32 %seen32, ptr null, ptr null, i32 0)",
            call + ", i32 129, i32 2147483647, ptr null, ptr null, i32 0)",
        )
    if system == "Windows":
        return (
            "declare i32 @SwitchToThread()\ndeclare void @Sleep(i32)",
            "call i32 @SwitchToThread()",
            "call void @Sleep(i32 1)",
            "",
        )
    return (
        "declare i32 @sched_yield()\ndeclare i32 @usleep(i32)",
        "call i32 @sched_yield()",
        "call i32 @usleep(i32 500)",
        "",
    )


def _field(name: str, base: str, offset: int, kind: str = "i64") -> str:
    return f"""  %{name}.p = getelementptr i8, ptr %{base}, i64 {offset}
  %{name} = load {kind}, ptr %{name}.p, align 8
"""


def support_text() -> str:
    """Return the module's functions as IR."""
    pause_declaration, pause = _pause()
    declarations, give_way, sleep, wake = _system()
    declared = [pause_declaration, declarations, "declare i64 @llvm.umin.i64(i64, i64)"]
    calls = [_check_args(), _check_indices(), _participate(pause, give_way), _call(wake)]
    threads = [_worker(pause, give_way, sleep), _wake_all(wake), _touch()]
    return "\n".join([*declared, *calls, *threads])


def _check_args() -> str:
    """Read the arrays' addresses from the argument tuple; return the number of the first unfit one, or 0."""
    return f"""
define internal i64 @take_args(ptr %ctx, ptr %args) {{
entry:
{_field("count", "ctx", ARG_COUNT)}{_field("records", "ctx", ARGS, "ptr")}{_field("type", "ctx", ARRAY_TYPE)}\
{_field("items", "ctx", TUPLE_ITEMS)}{_field("data", "ctx", ARRAY_DATA)}  %none = icmp eq i64 %count, 0
  br i1 %none, label %good, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fits ]
  %i.bytes = shl i64 %i, 3
  %item.offset = add i64 %items, %i.bytes
  %item.p = getelementptr i8, ptr %args, i64 %item.offset
  %item = load ptr, ptr %item.p, align 8
  %item.type.p = getelementptr i8, ptr %item, i64 8
  %item.type = load i64, ptr %item.type.p, align 8
  %is.array = icmp eq i64 %item.type, %type
  br i1 %is.array, label %fields, label %bad
fields:
  %record.offset = mul i64 %i, {8 * ARG_WORDS}
  %record = getelementptr i8, ptr %records, i64 %record.offset
  %array = getelementptr i8, ptr %item, i64 %data
  %address = load i64, ptr %array, align 8
{_field("nd", "array", 8, "i32")}{_field("dims", "array", 16, "ptr")}{_field("descr", "array", 40)}\
{_field("flags", "array", 48, "i32")}  %slot = load i64, ptr %record, align 8
{_field("want.descr", "record", 8)}{_field("want.nd", "record", 16, "i32")}{_field("want.dims", "record", 24, "ptr")}\
{_field("want.flags", "record", 32, "i32")}  %same.descr = icmp eq i64 %descr, %want.descr
  %same.nd = icmp eq i32 %nd, %want.nd
  %have.flags = and i32 %flags, %want.flags
  %same.flags = icmp eq i32 %have.flags, %want.flags
  %two = and i1 %same.descr, %same.nd  %three = and i1 %two, %same.flags
  br i1 %three, label %shape, label %bad
shape:
  %d = phi i32 [ 0, %fields ], [ %d.next, %same ]
  %more = icmp ult i32 %d, %nd
  br i1 %more, label %compare, label %fits
compare:
  %d.wide = zext i32 %d to i64
  %have.p = getelementptr i64, ptr %dims, i64 %d.wide
  %want.p = getelementptr i64, ptr %want.dims, i64 %d.wide
  %have = load i64, ptr %have.p, align 8
  %want = load i64, ptr %want.p, align 8
  %equal = icmp eq i64 %have, %want
  br i1 %equal, label %same, label %bad
same:
  %d.next = add i32 %d, 1
  br label %shape
fits:
  %place = getelementptr i8, ptr %ctx, i64 %slot
  store i64 %address, ptr %place, align 8
  %i.next = add i64 %i, 1
  %left = icmp ult i64 %i.next, %count
  br i1 %left, label %next, label %good
bad:
  %number = phi i64 [ %i, %next ], [ %i, %fields ], [ %i, %compare ]
  %one.based = add i64 %number, 1
  ret i64 %one.based
good:
  ret i64 0
}}
"""


def _check_indices() -> str:
    """Check every index array: -extent <= index < extent; return the number of the first bad one, or 0."""
    narrow = [(size, extend) for size in (1, 2, 4) for extend in ("sext", "zext")]
    names = [f"{extend}{size}" for size, extend in narrow]
    codes = [size + UNSIGNED * (extend == "zext") for size, extend in narrow]
    cases = " ".join(f"i64 {code}, label %{name}" for code, name in zip(codes, names, strict=True))
    values = ", ".join(f"[ %{name}.v, %{name} ]" for name in names)
    readers = "".join(
        f"{name}:\n  %{name}.p = getelementptr i{8 * size}, ptr %base, i64 %e\n"
        f"  %{name}.n = load i{8 * size}, ptr %{name}.p, align {size}\n"
        f"  %{name}.v = {extend} i{8 * size} %{name}.n to i64\n  br label %test\n"
        for name, (size, extend) in zip(names, narrow, strict=True)
    )
    return f"""
define internal i64 @check_indices(ptr %ctx) {{
entry:
{_field("count", "ctx", CHECK_COUNT)}{_field("records", "ctx", CHECKS, "ptr")}  %none = icmp eq i64 %count, 0
  br i1 %none, label %good, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fits ]
  %record.offset = mul i64 %i, {8 * CHECK_WORDS}
  %record = getelementptr i8, ptr %records, i64 %record.offset
  %slot = load i64, ptr %record, align 8
{_field("size", "record", 8)}{_field("bytes", "record", 16)}{_field("range", "record", 24)}\
{_field("low", "record", 32)}{_field("spare", "record", 40)}\
  %base.p = getelementptr i8, ptr %ctx, i64 %slot
  %base = load ptr, ptr %base.p, align 8
  br label %element
element:
  %e = phi i64 [ 0, %next ], [ %e.next, %inside ]
  %left = icmp ult i64 %e, %size
  br i1 %left, label %read, label %fits
read:
  switch i64 %bytes, label %wide [{cases}]
wide:
  %p8 = getelementptr i64, ptr %base, i64 %e
  %v8 = load i64, ptr %p8, align 8
  br label %test
{readers}test:
  %v = phi i64 [ %v8, %wide ], {values}
  %shifted = sub i64 %v, %low
  %within = icmp ult i64 %shifted, %range
  %spared = icmp eq i64 %v, %spare
  %ok = or i1 %within, %spared
  br i1 %ok, label %inside, label %bad
inside:
  %e.next = add i64 %e, 1
  br label %element
fits:
  %i.next = add i64 %i, 1
  %again = icmp ult i64 %i.next, %count
  br i1 %again, label %next, label %good
bad:
  %code = add i64 %i, {BAD_INDEX}
  ret i64 %code
good:
  ret i64 0
}}
"""


def _participate(pause: str, give_way: str) -> str:
    """Claim and run shares until the step is done; see the module docstring."""
    return f"""
define i64 @participate(ptr %ctx, i64 %tid) {{
entry:
{_field("shares", "ctx", SHARES)}{_field("phases", "ctx", PHASES)}{_field("table", "ctx", TABLE, "ptr")}\
  %target.p = getelementptr i8, ptr %ctx, i64 {TARGET}
  br label %look
look:
  %done = load atomic i64, ptr %ctx acquire, align 8
  %target = load atomic i64, ptr %target.p acquire, align 8
  %over = icmp uge i64 %done, %target
  br i1 %over, label %finished, label %current
current:
  %k = udiv i64 %done, %shares
  %k.next = add i64 %k, 1  %full = mul i64 %k.next, %shares
  br label %try
try:
  %j = phi i64 [ 0, %current ], [ %j.next, %taken ]
  %s.sum = add i64 %tid, %j
  %s = urem i64 %s.sum, %shares
  %claim.offset = mul i64 %s, {CLAIM_SIZE}
  %claim.at = add i64 %claim.offset, {CLAIMS}
  %claim = getelementptr i8, ptr %ctx, i64 %claim.at
  %claimed = load atomic i64, ptr %claim monotonic, align 8
  %free = icmp eq i64 %claimed, %k
  br i1 %free, label %swap, label %taken
swap:
  %pair = cmpxchg ptr %claim, i64 %k, i64 %k.next acq_rel monotonic, align 8
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %work, label %taken
work:
  %local = urem i64 %k, %phases
  %function.p = getelementptr ptr, ptr %table, i64 %local
  %function = load ptr, ptr %function.p, align 8
  call void %function(ptr %ctx, i64 %s)
  %before = atomicrmw add ptr %ctx, i64 1 acq_rel, align 8
  br label %look
taken:
  %j.next = add i64 %j, 1
  %others = icmp ult i64 %j.next, %shares
  br i1 %others, label %try, label %spin
spin:
  %turn = phi i64 [ 0, %taken ], [ %turn.next, %patience ], [ %turn.next, %gave ]
  {pause}
  %now = load atomic i64, ptr %ctx acquire, align 8
  %moved = icmp uge i64 %now, %full
  br i1 %moved, label %look, label %patience.test
patience.test:
  %turn.next = add i64 %turn, 1
  %tired = icmp ugt i64 %turn, {_SPINS_IN_STEP}
  br i1 %tired, label %gave, label %patience
patience:
  br label %spin
gave:
  {give_way}
  br label %spin
finished:
  ret i64 0
}}
"""


def _touch() -> str:
    """Write to a byte of every page of some arrays without changing it, until `stop` is set.

    `places` has address and bytes of each. Other threads may use the memory, so a write is an atomic addition; `zero`
    is an argument because LLVM would turn the addition of a constant zero into a read.
    """
    return f"""
define void @touch(ptr %places, i64 %count, ptr %stop, i8 %zero) {{
entry:
  br label %array
array:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %left = icmp ult i64 %i, %count
  br i1 %left, label %open, label %finished
open:
  %place = getelementptr [2 x i64], ptr %places, i64 %i
{_field("begin", "place", 0, "ptr")}{_field("bytes", "place", 8)}  br label %page
page:
  %at = phi i64 [ 0, %open ], [ %at.next, %write ]
  %inside = icmp ult i64 %at, %bytes
  br i1 %inside, label %look, label %next
look:
  %told = load atomic i64, ptr %stop monotonic, align 8
  %on = icmp eq i64 %told, 0
  br i1 %on, label %write, label %finished
write:
  %p = getelementptr i8, ptr %begin, i64 %at
  %old = atomicrmw add ptr %p, i8 %zero monotonic
  %at.next = add i64 %at, {PAGE}
  br label %page
next:
  %i.next = add i64 %i, 1
  br label %array
finished:
  ret void
}}
"""


def _call(wake: str) -> str:
    """Check arguments, then run phases, with the pool or alone.

    `call_step` begins a step; `resume` runs more phases of it after ops of the host.
    """
    wake_code = f"  {wake}" if wake else ""
    return f"""
define i64 @call_step(ptr %ctx, ptr %args, i64 %alone, i64 %phases) {{
entry:
  %unfit = call i64 @take_args(ptr %ctx, ptr %args)
  %fit = icmp eq i64 %unfit, 0
  br i1 %fit, label %indices, label %refuse
refuse:
  ret i64 %unfit
indices:
  %bad = call i64 @check_indices(ptr %ctx)
  %good = icmp eq i64 %bad, 0
  br i1 %good, label %start, label %refuse.index
refuse.index:
  ret i64 %bad
start:
  %result = call i64 @resume(ptr %ctx, i64 %alone, i64 %phases)
  ret i64 0
}}

define i64 @resume(ptr %ctx, i64 %alone, i64 %phases) {{
entry:
{_field("shares", "ctx", SHARES)}{_field("pool", "ctx", POOL, "ptr")}\
  %target.p = getelementptr i8, ptr %ctx, i64 {TARGET}
  %old = load i64, ptr %target.p, align 8
  %more = mul i64 %shares, %phases
  %new = add i64 %old, %more
  store atomic i64 %new, ptr %target.p release, align 8
  %single = icmp eq i64 %alone, 1
  br i1 %single, label %run, label %publish
publish:
  %job = getelementptr i8, ptr %pool, i64 {JOB}
  store atomic ptr %ctx, ptr %job release, align 8
  %epoch = atomicrmw add ptr %pool, i64 1 seq_cst, align 8
  %sleepers.p = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %sleepers = load atomic i64, ptr %sleepers.p seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %wake, label %run
wake:
{wake_code}
  br label %run
run:
  %result = call i64 @participate(ptr %ctx, i64 0)
  ret i64 0
}}
"""


def _worker(pause: str, give_way: str, sleep: str) -> str:
    """Wait for steps and take part in them, until the pool stops. Spin, then yield, then sleep."""
    return f"""
define i64 @work(ptr %pool, i64 %tid) {{
entry:
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %job = getelementptr i8, ptr %pool, i64 {JOB}
  %inside = getelementptr i8, ptr %pool, i64 {INSIDE}
  %stop = getelementptr i8, ptr %pool, i64 {STOP}
  br label %wait
wait:
  %seen = phi i64 [ 0, %entry ], [ %epoch, %idle ]
  br label %poll
poll:
  %turn = phi i64 [ 0, %wait ], [ %turn.next, %spin ], [ %turn.next, %yield ], [ %turn.next, %slept ]
  %epoch = load atomic i64, ptr %pool seq_cst, align 8
  %turn.next = add i64 %turn, 1
  %moved = icmp ne i64 %epoch, %seen
  br i1 %moved, label %go, label %how
how:
  %eager = icmp ult i64 %turn, {_SPINS_IDLE}
  br i1 %eager, label %spin, label %less
spin:
  {pause}
  br label %poll
less:
  %ready = icmp ult i64 %turn, {_SPINS_IDLE + _YIELDS_IDLE}
  br i1 %ready, label %yield, label %sleep
yield:
  {give_way}
  br label %poll
sleep:
  %count = atomicrmw add ptr %sleepers, i64 1 seq_cst, align 8  %seen32 = trunc i64 %seen to i32
  {sleep}
  %uncount = atomicrmw sub ptr %sleepers, i64 1 seq_cst, align 8
  br label %slept
slept:
  br label %poll
go:
  %stopping = load atomic i64, ptr %stop acquire, align 8
  %ends = icmp ne i64 %stopping, 0
  br i1 %ends, label %leave, label %enter
enter:
  %in = atomicrmw add ptr %inside, i64 1 seq_cst, align 8
  %ctx = load atomic ptr, ptr %job seq_cst, align 8
  %nothing = icmp eq ptr %ctx, null  br i1 %nothing, label %out, label %join
join:
{_field("shares", "ctx", SHARES)}  %useful = icmp ult i64 %tid, %shares
  br i1 %useful, label %take.part, label %out
take.part:
  %result = call i64 @participate(ptr %ctx, i64 %tid)
  br label %out
out:
  %was = atomicrmw sub ptr %inside, i64 1 seq_cst, align 8
  br label %idle
idle:
  br label %wait
leave:
  ret i64 0
}}
"""


def _wake_all(wake: str) -> str:
    """Let every worker look at the pool again."""
    return f"""
define void @wake_all(ptr %pool) {{
  %old = atomicrmw add ptr %pool, i64 1 seq_cst, align 8
  {wake}
  ret void
}}
"""
