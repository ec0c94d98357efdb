"""Steps written as C: the same losses as here, no warning, nothing that a sanitizer finds, and the way back."""

from __future__ import annotations

import importlib
import shutil
import subprocess

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from tests.compile.c.conftest import FAST, SANITIZED, losses_in_c, needs_compiler
from tests.compile.c.steps import STEPS, training

pytestmark = needs_compiler
QUICK = ("names_mlp", "images")


def trained(name):
    """Return a step after two calls, and the batches that follow."""
    gg.manual_seed(3)
    step, batches = STEPS[name]()
    for batch in batches[:2]:
        step(*batch)
    return step, batches[2:]


@pytest.mark.parametrize("name", STEPS)
def test_twenty_steps_agree(name, tmp_path):
    step, batches = trained(name)
    got = losses_in_c(step, tmp_path, batches[:20])
    want = np.array([step(*batch).item() for batch in batches[:20]])
    np.testing.assert_allclose(got, want, rtol=1e-12 if "double" in name else 1e-5)


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if one == "double_tiles" else one for one in STEPS]
)
def test_sanitizers_find_nothing(name, tmp_path):
    step, batches = trained(name)
    got = losses_in_c(step, tmp_path, batches[:3], SANITIZED)
    want = np.array([step(*batch).item() for batch in batches[:3]])
    np.testing.assert_allclose(got, want, rtol=1e-12 if "double" in name else 1e-5)


@pytest.mark.parametrize("compiler", ["clang", "tcc"])
@pytest.mark.parametrize("name", ["names_mlp", "images", "double", "tiles"])
def test_other_compilers_agree(name, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    step, batches = trained(name)
    flags = FAST if compiler == "clang" else []
    got = losses_in_c(step, tmp_path, batches[:5], flags, compiler)
    want = np.array([step(*batch).item() for batch in batches[:5]])
    np.testing.assert_allclose(got, want, rtol=1e-12 if "double" in name else 1e-5)


@pytest.mark.parametrize("name", ["names_mlp", "dropout", "images"])
def test_a_run_goes_on_in_python(name, tmp_path):
    """State and generator come back from C, so the next loss is that of a run that never left."""
    step, batches = trained(name)
    losses_in_c(step, tmp_path, batches[:20])
    loaded = gg.load(tmp_path / "trained.weights")
    for batch in batches[:20]:
        step(*batch)
    kept = [one.tensor.array for one in step.capture.state if not one.path.endswith(".grad")]
    assert kept
    for one in step.capture.state:
        if one.path in loaded:
            np.testing.assert_allclose(loaded[one.path].numpy(), one.tensor.array, rtol=1e-3, atol=1e-4)
    want = step(*batches[20]).item()
    step.load_c(tmp_path / "trained.weights")
    assert step(*batches[20]).item() == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in STEPS])
def test_the_makefile_runs_the_example(name, tmp_path):
    """What is written stands alone: make, 3 steps on the example batch, the losses of Python."""
    gg.manual_seed(3)
    step, batches = STEPS[name]()
    step(*batches[0])  # the call that is traced gives the example
    step.export_c(tmp_path)
    made = subprocess.run(["make", "CC=gcc"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "warning" not in made.stderr
    run = subprocess.run(["./step", "3"], cwd=tmp_path, capture_output=True, text=True, check=True)
    got = [float(line.split()[-1]) for line in run.stdout.splitlines()]
    np.testing.assert_allclose(got, [step(*batches[0]).item() for _ in range(3)], rtol=1e-5)


def test_the_program_says_what_it_is(tmp_path):
    """Names and lines of the user, formulas of the ops, sizes by name, the arena as a constant."""
    step, _ = trained("names_mlp")
    step.export_c(tmp_path)
    header, source = (tmp_path / "step.h").read_text(), (tmp_path / "step.c").read_text()
    assert "BATCH = 16" in header
    assert "STEP_ARENA_BYTES = " in header
    assert "double lr;" in header
    assert "loss = loss_fn(model(x), y)" in source
    assert "tanh: tanh(x)" in source
    assert "malloc" not in source


def test_an_index_outside_is_refused_and_changes_nothing(tmp_path):
    step, batches = trained("embedding")
    wrong = gg.tensor(np.full((8, 3), 9))
    with pytest.raises(AssertionError, match="4"):
        losses_in_c(step, tmp_path, [(wrong, batches[0][1])])
    assert not (tmp_path / "trained.weights").exists()


BLAS = """\
#include <stdio.h>
enum { CblasRowMajor = 101, CblasNoTrans = 111, CblasTrans = 112 };
static inline void cblas_GEMM(int order, int turn_a, int turn_b, int m, int n, int k, TYPE alpha, const TYPE *a,
                              int lda, const TYPE *b, int ldb, TYPE beta, TYPE *c, int ldc)
{
    FILE *called = fopen("called", "w");
    if (called != NULL && order == CblasRowMajor) {
        fclose(called);
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            TYPE sum = 0;
            for (int p = 0; p < k; p++) {
                sum += a[turn_a == CblasTrans ? p * lda + i : i * lda + p] *
                       b[turn_b == CblasTrans ? j * ldb + p : p * ldb + j];
            }
            c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
        }
    }
}
"""


@pytest.mark.parametrize("name", ["names_mlp", "images", "double", "double_tiles", "wide"])
def test_products_may_come_from_a_blas(name, tmp_path):
    """A BLAS of the test's own in `cblas.h` is called with the right sizes and layouts."""
    single, double = (
        BLAS.replace("GEMM", gemm).replace("TYPE", kind) for gemm, kind in (("sgemm", "float"), ("dgemm", "double"))
    )
    (tmp_path / "cblas.h").write_text(single + double.split("\n", 2)[2])
    step, batches = trained(name)
    threads = ["-fopenmp"] if name == "wide" else []
    got = losses_in_c(step, tmp_path, batches[:3], [*FAST, "-DGG_USE_CBLAS", "-DGG_BLAS_LEAST=0", "-I.", *threads])
    want = np.array([step(*batch).item() for batch in batches[:3]])
    assert (tmp_path / "called").exists()
    np.testing.assert_allclose(got, want, rtol=1e-12 if "double" in name else 1e-5)


@pytest.mark.parametrize("name", ["names_mlp", "images", "wide"])
def test_threads_share_products(name, tmp_path):
    step, batches = trained(name)
    got = losses_in_c(step, tmp_path, batches[:3], [*FAST, "-fopenmp"])
    want = np.array([step(*batch).item() for batch in batches[:3]])
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_names_of_the_user_never_meet_those_of_the_loops(tmp_path):
    """Arguments may be called as the counters, rooms and constants of the written functions are."""
    gg.manual_seed(3)
    strips, columns, bordered = (gg.randn(*shape).requires_grad_() for shape in ((3, 4, 5), (4, 2, 3, 3), (2, 5, 3)))
    optimizer = optim.SGD([strips, columns, bordered], lr=0.1)

    @gg.compile(strict=True)
    def step(x, given):
        first = F.max_pool2d(F.conv2d(given, columns, padding=1), 2)
        total = ((x @ strips).tanh()[:2] @ bordered).sum()
        loss = total + first.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    batches = [(gg.randn(3, 6, 4), gg.randn(2, 2, 8, 8)) for _ in range(5)]
    step(*batches[0])
    got = losses_in_c(step, tmp_path, batches[1:])
    np.testing.assert_allclose(got, [step(*batch).item() for batch in batches[1:]], rtol=1e-4)


def test_a_network_for_digits_reaches_the_same_accuracy(tmp_path):
    """Three epochs in C and three in Python, from the same weights; the test digits are told apart equally well."""
    gg.manual_seed(0)
    train, test = gg.data.digits()
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip  # a table
    step = training(model, optim.Adam(model.parameters(), lr=3e-3))
    order = np.random.default_rng(0).permutation(1_408).reshape(-1, 32)
    batches = [(gg.tensor(train.inputs[rows]), gg.tensor(train.targets[rows])) for rows in order]
    step(*batches[0])

    def accuracy():
        with gg.no_grad():
            return float((model(gg.tensor(test.inputs)).numpy().argmax(1) == test.targets).mean())

    before = accuracy()
    losses_in_c(step, tmp_path, batches * 3)
    for batch in batches * 3:
        step(*batch)
    in_python = accuracy()
    step.load_c(tmp_path / "trained.weights")
    assert before < 0.5
    assert in_python > 0.8
    assert accuracy() == pytest.approx(in_python, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("w1_names_mlp", []),
        ("w3_char_gpt", []),
        ("w5_small_cnn", []),
        ("w3_char_gpt", ["-fopenmp"]),
        ("w5_small_cnn", ["-fopenmp"]),
    ],
)
def test_the_steps_of_the_benchmarks_agree(name, more, tmp_path):
    peer, problem = (
        importlib.import_module(f"benchmarks.workloads.{name}.{part}") for part in ("glassgrad_peer", "problem")
    )
    step, batches = (
        training(*peer.parts()),
        [tuple(map(gg.tensor, one)) for one in zip(*problem.batches(), strict=True)],
    )
    for batch in batches[:2]:
        step(*batch)
    got = losses_in_c(step, tmp_path, batches[2:22], [*FAST, *more])
    np.testing.assert_allclose(got, [step(*batch).item() for batch in batches[2:22]], rtol=1e-5)
