"""`torch.special`: special functions under PyTorch's names; each is also a function of glassgrad."""

from typing import TYPE_CHECKING

from glassgrad.base.tables import words
from glassgrad.errors.missing import getter, lister
from glassgrad.ops.names import PUBLIC, at_home

_NAMES = words("""
    airy_ai chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w zeta bessel_j0
    bessel_j1 bessel_y0 bessel_y1 betainc digamma entr erf erfc erfcx erfinv exp2 expit expm1
    gammainc gammaincc gammaln i0 i0e i1 i1e log1p log_ndtr log_softmax logit logsumexp modified_bessel_i0
    modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc softmax spherical_bessel_j0 xlog1py xlogy
    """)

_FUNCTIONS = {name: PUBLIC[name] for name in _NAMES}
globals().update(_FUNCTIONS)
at_home(__name__, _FUNCTIONS)

if not TYPE_CHECKING:
    __getattr__ = getter(__name__)

__all__ = list(_FUNCTIONS)
__dir__ = lister(__name__)
