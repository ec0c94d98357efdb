"""Methods of PyTorch's tensors that ours lack, and what to use instead.

The names are attributes that raise, so that the message can say more than Python's; existing attributes do not become
slower.
"""

from __future__ import annotations

from typing import Any

from glassgrad.errors.missing import missing

_ASSIGN = "there is no such method in place; assign the result of the one without the underscore."
_MEMORY = "the memory of a tensor is a NumPy array: .numpy() shows it, numpy.lib.stride_tricks takes it apart."
_DENSE = "tensors are dense; .to_sparse() gives a matrix by its entries, see glassgrad.sparse for what it can do."
_EXACT = "weights stay in floating point; nothing is quantized."
_CPU = "computation happens on the processor; there is nothing to ask or to move."
_RANDOM = "draw with uniform_, normal_, exponential_ or bernoulli_ and transform what was drawn."
_LINALG = "there are linalg.solve, linalg.solve_triangular, linalg.lu_solve, linalg.qr, linalg.lstsq and linalg.pinv."
_REAL = "complex numbers are complex64 and complex128: .to(glassgrad.complex64)."
_HOOK = "use register_hook, which sees the gradient on its way into .grad."
_NUMPY = "where no gradient is needed, NumPy's or SciPy's function works on .detach().numpy()."
_TURNED = "the conjugate transpose of a matrix is .mH."

# The advice, and the methods it applies to.
_INSTEAD: dict[str, str] = {
    _ASSIGN: (
        "addbmm_ addmm_ addmv_ addr_ baddbmm_ bitwise_left_shift_ bitwise_right_shift_ conj_physical_ eq_ ge_ "
        "greater_ greater_equal_ gt_ heaviside_ i0_ le_ less_ less_equal_ logical_and_ logical_not_ logical_or_ "
        "logical_xor_ lt_ ne_ nextafter_ not_equal_ polygamma_ "
        "gcd_ lcm_ igamma_ igammac_ mvlgamma_ index_reduce_"
    ),
    _MEMORY: (
        "as_strided_ as_strided_scatter const_data_ptr is_set_to map_ map2_ apply_ new_empty_strided "
        "resize resize_ resize_as resize_as_ set_ storage storage_offset storage_type untyped_storage dim_order "
        "as_subclass"
    ),
    _DENSE: (
        "ccol_indices coalesce col_indices crow_indices dense_dim is_coalesced is_nested is_sparse_csr "
        "resize_as_sparse_ row_indices smm sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm "
        "to_padded_tensor to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr "
        "indices values layout"
    ),
    _EXACT: (
        "dequantize int_repr is_quantized q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
        "q_zero_point qscheme"
    ),
    _CPU: (
        "ipu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_vulkan is_xla is_xpu mtia record_stream to_mkldnn xpu "
        "is_distributed is_inference module_load"
    ),
    _RANDOM: ("cauchy_ geometric_ log_normal_"),
    _LINALG: ("cholesky_inverse cholesky_solve geqrf lstsq orgqr ormqr symeig triangular_solve"),
    _REAL: ("cdouble cfloat chalf conj_physical is_conj is_neg resolve_conj resolve_neg"),
    _HOOK: ("register_post_accumulate_grad_hook reinforce output_nr grad_dtype volatile name"),
    _NUMPY: ("gcd lcm frexp hash_tensor mvlgamma"),
    "": (
        "diagonal_scatter index index_reduce isreal nanquantile narrow_copy "
        "nonzero_static slice_inverse split_with_sizes sum_to_size unsafe_chunk unsafe_split "
        "unsafe_split_with_sizes"
    ),
    _TURNED: "H adjoint",
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
