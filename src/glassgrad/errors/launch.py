"""Messages about starting a program on several ranks, and about ranks that fail."""

from __future__ import annotations

from glassgrad.errors.kinds import AutogradError, KindError, Message, ProcessExitedError, ProcessRaisedError
from glassgrad.errors.runs import InputError, RunError

# Each is one line, because the command line prints them as `error: ...`.

LAUNCH_NO_MPI = Message(
    InputError,
    "glassgrad launch needs {missing}, which is not installed; pip install 'glassgrad[mpi]' brings mpi4py and MPICH's "
    "mpiexec",
)
LAUNCH_NO_STARTER = Message(InputError, "cannot start the ranks with {given!r}: {reason}")
LAUNCH_COUNT = Message(InputError, "-n must be a whole number of at least 1, given {given}")
LAUNCH_NO_COUNT = Message(
    InputError, "how many ranks? Give -n, as in `glassgrad launch -n 4 {script}`; only a Slurm job sets it by itself"
)
LAUNCH_NO_SCRIPT = Message(InputError, "no script {given}: {reason}; expected a Python file, or -m and a module")
LAUNCH_NO_HOSTFILE = Message(
    InputError, "cannot use the hostfile {given}: {reason}; expected one host per line, as `node1` or `node1:8`"
)

RANK_KILLED = Message(
    RunError, "rank {rank} (process {pid} on {host}) was killed by signal {signal} ({name}{hint}); all ranks were ended"
)
RANK_KILLED_UNNAMED = Message(
    RunError, "process {pid} on {host} was killed by signal {signal} ({name}{hint}); all ranks were ended"
)

# Text written to standard error before all ranks are ended.
RANK_RAISED = Message(RunError, "{rank} raised {error}; all ranks were ended")
RANK_DIED = Message(
    RunError,
    "{rank} died without a message, as after a kill or when memory runs out; all ranks were ended",
)
RANK_SILENT = Message(
    RunError,
    "{rank} has sent no sign of life for {seconds:.0f} s, last at {at}: it is stopped, or its machine is unreachable; all "
    "ranks were ended",
)
RANK_HANGS = Message(
    RunError,
    "{rank} has done nothing for {seconds:.0f} s at {at}, while others wait for it: {calls}; all ranks were ended "
    "(GLASSGRAD_HANG_SECONDS sets the time)",
)
RANK_CIRCLES = Message(
    RunError,
    "{rank} has computed for {seconds:.0f} s in one call of one function, at {at}, while others wait for it: {calls}; all "
    "ranks were ended. A long computation can announce itself with glassgrad.distributed.busy('...') "
    "(GLASSGRAD_HANG_SECONDS sets the time)",
)
RANKS_LOCKED = Message(
    RunError,
    "all ranks have waited for one another for {seconds:.0f} s: {calls}; all ranks were ended. Every rank has to make the same "
    "calls in the same order, and every recv needs its send",
)
RANK_LEFT = Message(RunError, "{rank} has ended{how}, while others wait for it: {calls}; all ranks were ended")
RANK_SLOW = Message(RunError, "waiting for more than {seconds:.0f} s: {calls}; {late}")
RANK_NO_WATCH = Message(
    RunError,
    "rank {rank} cannot reach rank 0 on {address}: {reason}; only MPI notices ranks that die or hang",
)
RANKS_DIFFER = Message(
    RunError,
    "the ranks run different versions: {differences}\nNext: install the same on every machine, or start all ranks in one "
    "environment.",
)


class OtherRankError(RunError):
    """Rank 0 could not continue; it reports the reason itself."""


OTHER_RANK = Message(OtherRankError, "rank {rank} ends, because rank 0 could not continue: {reason}")
RANKS_DATA_DIFFER = Message(
    InputError,
    "the first batch differs between rank {ranks} and rank 0, but all ranks must get the same batches. Shuffle with "
    "glassgrad's random numbers or a seeded generator, read the same files everywhere, and leave out DistributedSampler",
)

PROCESS_RAISED = Message(ProcessRaisedError, "\n\n-- Process {rank} terminated with the following error:\n{text}")

PROCESS_EXITED = Message(
    ProcessExitedError,
    "process {rank} terminated with {how}\nNext: read its output above; another process or the system may have ended it.",
)

NO_SHARED_MEMORY = Message(
    AutogradError,
    "processes cannot share the memory of tensors on this system ({where}): they cannot send open files to each other.\n"
    "Next: let the processes return weights or gradients through a queue, which copies them.",
)

SHARE_NO_VALUES = Message(
    KindError,
    "a tensor without values cannot move into shared memory ({where}).\n"
    "Next: share it before the transformation or the compiled function, or after a lazy layer has seen an input.",
)

SEND_NON_LEAF = Message(
    AutogradError,
    "{what} is the result of recorded ops, which stay in this process: it cannot be sent to another process.\n"
    "Next: send its .detach().",
)
