"""Computing with several processes over MPI, with the names of `torch.distributed`.

``mpirun -n 4 python train.py`` starts the processes. Without MPI, or in a single process, everything works as rank 0
of 1. Names are imported on first use; `init_process_group` imports mpi4py. Collectives take tensors and write them in
place. `collectives.py` holds them, `objects.py` those for Python objects, `messages.py` single sends and receives,
`reducer.py` and `buckets.py` average gradients, `primitives.py` puts collectives into compiled steps; `guard.py`,
`links.py`, `monitor.py` and `life.py` end all ranks together when one dies or hangs.
"""

from __future__ import annotations

from glassgrad.base.families import serve

# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "TCPStore": "leave it out: the MPI launcher connects the processes.",
    "DeviceMesh": "use new_group, which makes a group of some of the ranks.",
}

__getattr__, __dir__ = serve(__name__, __path__, instead=_INSTEAD)


def _comm(group: object = None) -> object:
    """Return the mpi4py communicator of a group; None for a single process without MPI."""
    from glassgrad.distributed import world

    return world.resolve(group, "_comm").comm
