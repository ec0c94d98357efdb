"""Messages about several processes: groups, collectives, and what wraps a model for them."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, GlassgradError, KindError, Message, NoValueError, ShapeError


class DistributedError(GlassgradError, RuntimeError):
    """Processes do not agree, or one of them does not answer. A `RuntimeError`, as in PyTorch."""


class BackendWarning(UserWarning):
    """A PyTorch backend was requested, and MPI is used instead."""


NO_MPI = Message(
    DistributedError,
    "init_process_group at {where}: {count} processes were started, and mpi4py, which connects them, cannot be "
    "imported.\nNext: pip install 'glassgrad[mpi]', on every machine.",
)

NO_GROUP = Message(
    DistributedError,
    "{call} at {where}: there is no process group yet.\n"
    "Next: call glassgrad.distributed.init_process_group() first, in every process.",
)

GROUP_TWICE = Message(
    DistributedError,
    "init_process_group at {where}: there is a process group already.\n"
    "Next: call it once, or destroy_process_group() in between.",
)

BACKEND = Message(
    ArgumentError,
    "init_process_group(backend={given!r}) at {where}: processes communicate over MPI.\nNext: backend='mpi', or leave it out.",
)
BACKEND_IS_MPI = Message(
    BackendWarning,
    "backend={given!r} at {where}: the processes communicate over MPI instead, with the same calls and results. "
    "backend='mpi' avoids this warning.",
)
NOT_MPI = Message(
    DistributedError,
    "init_process_group at {where}: torchrun or another launcher unknown to MPI has started {count} processes; each of them "
    "would run alone.\nNext: glassgrad launch -n {count} script.py, or mpirun -n {count} python script.py.",
)
DDP_JOIN = Message(
    DistributedError,
    "DistributedDataParallel.join at {where}: ranks with different numbers of batches are not supported.\n"
    "Next: give all ranks the same number; DistributedSampler repeats a few examples to reach it, or drops some with "
    "drop_last=True.",
)
DDP_HOOK = Message(
    DistributedError,
    "DistributedDataParallel.register_comm_hook at {where}: communication hooks are not supported.\n"
    "Next: change a gradient before it is averaged with parameter.register_hook; or keep gradients local with no_sync(), "
    "change them after backward(), and average them with dist.all_reduce(p.grad, dist.ReduceOp.AVG).",
)

WORLD_DIFFERS = Message(
    ArgumentError,
    "init_process_group at {where}: {option}={given}, and MPI started this process as {actual}.\n"
    "Next: leave {option} out, or start the program with as many processes: mpirun -n {count} python script.py.",
)

GROUP_RANKS = Message(
    ArgumentError,
    "new_group at {where}: {given} are not different ranks between 0 and {last}.",
)

NO_SUCH_RANK = Message(
    ArgumentError,
    "{call} at {where}: {option}={given}, expected a rank of the group: {ranks}.",
)

CALLS_DIFFER = Message(
    DistributedError,
    "{call} at {where} on rank {rank}: the ranks call different collectives.\n{calls}\n"
    "Expected: the same call with the same shape and dtype on every rank, in the same order.",
)

COLLECTIVE_LENGTH = Message(
    ShapeError,
    "{call} at {where} on rank {rank}: {option} has {given} entries, expected one for each of the {expected} ranks.",
)

COLLECTIVE_SHAPE = Message(
    ShapeError,
    "{call} at {where} on rank {rank}: {option} is {given}, expected {expected}.",
)

MESSAGE_SIZE = Message(
    ShapeError,
    "recv at {where} on rank {rank}: rank {source} sent {given} bytes, and the tensor, {dtype} of shape {shape}, takes "
    "{expected}.\nNext: send and receive tensors of one shape and dtype.",
)

REDUCTION_DTYPE = Message(
    KindError,
    "{call} at {where}: {op} is not defined for {dtype}.\nNext: {hint}.",
)

NOT_A_TENSOR = Message(
    KindError,
    "{call} at {where}: {option} is of type {kind}, expected a Tensor, whose memory the call reads or writes.",
)

NO_ANSWER = Message(
    DistributedError,
    "{call} at {where} on rank {rank}: the other ranks ({others}) did not answer within {seconds:g} s.\n"
    "Next: check whether one of them has ended or waits in another call; init_process_group(timeout=...) sets the time.",
)

COLLECTIVE_TRACED = Message(
    NoValueError,
    "{call} at {where}: a compiled step can contain only all_reduce.\n"
    "Next: call it outside of the function that is compiled.",
)

UNUSED_PARAMETERS = Message(
    DistributedError,
    "backward at {where} on rank {rank}: the loss does not depend on these parameters, so the other ranks would wait "
    "for their gradients: {names}.\n"
    "Next: DistributedDataParallel(model, find_unused_parameters=True), or remove the unused parameters.",
)

PARAMETERS_DIFFER = Message(
    DistributedError,
    "DistributedDataParallel at {where} on rank {rank}: the ranks' models differ: {what}.\n"
    "Next: build the same model on every rank.",
)

NO_TRAINED_PARAMETER = Message(
    ArgumentError,
    "DistributedDataParallel at {where}: the model has no parameter that requires a gradient.\nNext: use the model without the wrapper.",
)

ZERO_NOT_WHOLE = Message(
    DistributedError,
    "ZeroRedundancyOptimizer.state_dict at {where}: rank {rank} has only its share of the state.\n"
    "Next: call consolidate_state_dict(to=0) on every rank, then state_dict() on rank 0.",
)

ZERO_OVERLAP = Message(
    ArgumentError,
    "ZeroRedundancyOptimizer at {where}: overlap_with_ddp=True, expected False.\n"
    "Next: leave it out; gradients are always exchanged during the backward pass.",
)
