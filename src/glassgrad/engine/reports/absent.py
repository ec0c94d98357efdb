"""Methods of PyTorch's tensors that ours lack, and what to use instead.

The names are attributes that raise, so that the message can say more than Python's; existing attributes do not become
slower.
"""

from __future__ import annotations

from typing import Any

from glassgrad.errors.missing import missing

_MEMORY = "the memory of a tensor is a NumPy array: use .numpy(), and numpy.lib.stride_tricks for views of it."
_DENSE = "tensors are dense; .to_sparse() returns a sparse matrix, see glassgrad.sparse for its functions."
_EXACT = "weights stay in floating point; nothing is quantized."
_CPU = "computation happens on the CPU; leave the call out."
_LINALG = "use linalg.solve, linalg.solve_triangular, linalg.lu_solve, linalg.qr, linalg.lstsq or linalg.pinv."
_REAL = "complex numbers are complex64 and complex128: use .cfloat() or .cdouble()."
_HOOK = "use register_hook, which receives the gradient before it is added to .grad."
_NUMPY = "use NumPy's or SciPy's function on .detach().numpy() if you need no gradient."

# The advice, and the methods it applies to.
_INSTEAD: dict[str, str] = {
    _MEMORY: "const_data_ptr resize resize_as storage_type as_subclass",
    _DENSE: (
        "ccol_indices coalesce col_indices crow_indices dense_dim is_coalesced resize_as_sparse_ row_indices smm "
        "sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm to_padded_tensor to_sparse_bsc "
        "to_sparse_bsr to_sparse_csc to_sparse_csr indices values"
    ),
    _EXACT: (
        "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point "
        "qscheme"
    ),
    _CPU: "ipu mtia record_stream to_mkldnn xpu module_load",
    _LINALG: "lstsq symeig",
    _REAL: "chalf",
    _HOOK: "reinforce output_nr grad_dtype volatile name",
    _NUMPY: "hash_tensor",
    "": "index slice_inverse",
}
INSTEAD = {name: instead for instead, names in _INSTEAD.items() for name in names.split()}


class Absent:
    """An attribute that raises, with a message that says what to use instead."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        instead = INSTEAD[self.name]
        given = {self.name: instead} if instead else None
        known = [one for one in dir(owner) if one not in INSTEAD and not one.startswith("_")]
        raise missing(owner.__name__, self.name, known, given)


def attach(owner: type) -> None:
    """Put the names on a class that does not define them."""
    for name in INSTEAD:
        if name not in vars(owner):
            absent = Absent()
            absent.__set_name__(owner, name)
            setattr(owner, name, absent)

    def listed(instance: Any) -> list[str]:
        return [name for name in object.__dir__(instance) if type(vars(owner).get(name)) is not Absent]

    type.__setattr__(owner, "__dir__", listed)  # absent names are not listed as completions


__all__ = ["INSTEAD", "Absent", "attach"]
