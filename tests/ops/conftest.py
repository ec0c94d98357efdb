"""Fixtures of the tests of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from glassgrad.ops.kernels import native, parallel, products


@pytest.fixture(autouse=True, scope="module")
def _threads_of_blas() -> Iterator[None]:
    """See to it that tests leave BLAS the threads that it had: later tests on their worker would take other ways."""
    before = parallel.shares.threads()
    yield
    assert parallel.shares.threads() == before


@pytest.fixture
def blas_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return a function that gives BLAS and the pool so many threads, whatever the machine has, up to the test's end.

    It skips the test where NumPy's BLAS is another one, or was built for one thread.
    """
    blas = parallel.numpys_blas()
    if blas is None or len(blas.products) < 2:
        pytest.skip("NumPy has another BLAS than OpenBLAS, beside which nothing is shared")
    before = blas.get()

    def give(count: int) -> None:
        blas.set(count)
        if blas.get() != count:
            pytest.skip("this OpenBLAS was built for one thread")

    monkeypatch.setattr(native.kernels, "off", False)
    monkeypatch.setattr("glassgrad.compile.native.runtime.available_cores", lambda: 2)
    products._threads_of_native_code.cache_clear()
    try:
        yield give
    finally:
        products._threads_of_native_code.cache_clear()
        blas.set(before)
