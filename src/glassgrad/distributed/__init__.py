"""Several processes that compute together, over MPI, with the names of `torch.distributed`.

``mpirun -n 4 python train.py`` starts the processes. Without MPI, or started alone, everything here works with one
process: rank 0 of 1. Nothing is imported until it is used; mpi4py by `init_process_group`.
"""

from __future__ import annotations

from glassgrad.base.families import serve

# What PyTorch has and this library has not, and what to use in its place.
_INSTEAD = {
    "TCPStore": "the MPI launcher tells the processes of one another.",
    "DeviceMesh": "new_group makes a group of some of the ranks.",
}

__getattr__, __dir__ = serve(__name__, __path__, instead=_INSTEAD)


def _comm(group: object = None) -> object:
    """Return the mpi4py communicator of a group; None where there is one process without MPI."""
    from glassgrad.distributed import world

    return world.resolve(group, "_comm").comm
