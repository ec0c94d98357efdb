"""The pieces of the core whose mutants are tried together, each with the tests that should notice them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/glassgrad"


@dataclass(frozen=True)
class Piece:
    """Files whose mutants are tried together, as patterns under the package, and pytest's arguments for their tests.

    Of the test files in `registries`, which have a case for every op, only the cases run whose name has a word that
    the sources have as a string or as a function's name. With `rules`, only the functions that the op table reaches
    are changed (`rules.py`).
    """

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    registries: tuple[str, ...] = ()
    rules: bool = False

    def files(self) -> list[str]:
        """Return the files, relative to the package."""
        base = ROOT / PACKAGE
        return sorted({path.relative_to(base).as_posix() for one in self.sources for path in base.glob(one)})

    def concerns(self, test: str) -> bool:
        """Tell whether a test, by pytest's name of it, is to run."""
        file, _, rest = test.partition("::")
        return file not in self.registries or not self.words().isdisjoint(re.split(r"[-\s.\[\]()]+", rest))

    @cache  # noqa: B019 - there are a dozen pieces
    def words(self) -> set[str]:
        """Return the strings and the names of functions in the sources, and the names of the files."""
        found = set()
        for file in self.files():
            found.add(Path(file).stem)
            for node in ast.walk(ast.parse((ROOT / PACKAGE / file).read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    found.add(node.name)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
        return found - {""}


OPTIMIZERS = (
    "optimizer", "sgd", "adam", "adadelta", "adafactor", "adagrad", "adamax", "asgd", "lbfgs", "lion", "muon", "nadam",
    "radam", "rmsprop", "rprop", "sparse_adam", "accumulate", "ema", "swa_utils", "update",
)  # fmt: skip  # a table

# Every op by its entry in the table, and by PyTorch's samples of it.
REGISTRIES = (
    "tests/ops/test_primitives.py",
    "tests/ops/test_dtypes_registry.py",
    "tests/func/test_registry_transforms.py",
    "tests/ops/test_opinfo_op_by_op.py",
    "tests/ops/test_refusals.py",
    "tests/ops/test_other_namespaces.py",
    "tests/ops/test_shape_rules.py",
)


def _ops(names: str, *tests: str, whole: str = "") -> Piece:
    """Return the piece of the rules in some files of ops, with tests named below `tests/`.

    Of the registry `whole`, the cases of all ops run, as rules of batching are named where an op is entered.
    """
    files = tuple(f"tests/{one if '/' in one else f'ops/test_{one}'}.py" for one in tests)
    slow = ("-m", "slow or not slow")
    return Piece(
        tuple(f"ops/{name}.py" for name in names.split()),
        (*REGISTRIES, *files, *slow),
        tuple(one for one in REGISTRIES if one != whole),
        rules=True,
    )


# The tests are the few fast ones that are about these files; what only the whole suite would notice counts as survived.
PIECES = {
    "tape": Piece(
        ("engine/tape.py", "engine/walks/plain_walk.py"),
        (
            "tests/engine/test_walk_options.py",
            "tests/engine/test_float_warnings.py",
            "tests/engine/test_kept_graphs.py",
            "tests/engine/test_walking_again.py",
            "tests/engine/test_walks.py",
            "tests/engine/test_walks_of_fused_ops.py",
            "tests/engine/test_complex_gradients.py",
            "tests/func/test_saving.py",
            "tests/func/test_vmap.py",
            "tests/engine/test_slices.py",
            "tests/doctor/test_nan_calls.py",
            "tests/doctor/test_nan_watch.py",
            "tests/engine/test_anomaly.py",
            "tests/engine/test_tape.py",
            *("-k", "not 200000 and not memory_is_flat"),
        ),
    ),
    "elementwise": Piece(
        ("ops/elementwise.py",),
        (
            "tests/ops/test_elementwise_rules.py",
            "tests/ops/test_formula_texts.py",
            "tests/ops/test_kernels.py",
            "tests/ops/test_other_namespaces.py",
            "tests/ops/test_blocks.py",
            "tests/ops/test_edges_registry.py",
            "tests/ops/test_complex.py",
        ),
    ),
    "reductions": Piece(
        ("ops/reduce.py", "ops/axes.py"),
        (
            "tests/ops/test_reductions_against_torch.py",
            "tests/ops/test_axes.py",
            "tests/ops/test_other_namespaces.py",
            "tests/ops/test_meaning.py",
            "tests/ops/test_signatures.py",
        ),
    ),
    "shapes": Piece(
        ("ops/shape.py",),
        (
            "tests/ops/test_shapes_against_torch.py",
            "tests/ops/test_other_namespaces.py",
            "tests/ops/test_views.py",
            "tests/ops/test_signatures.py",
        ),
    ),
    "activations": Piece(
        ("ops/activation.py",),
        (
            "tests/ops/test_activations_against_torch.py",
            "tests/ops/test_other_namespaces.py",
            "tests/ops/test_formula_texts.py",
            "tests/ops/test_blocks.py",
        ),
    ),
    "places": _ops("index places scatter strided views", "indexing", "places", "views", "sampling", "ties_and_borders"),
    "orders": _ops("sort scan data_dependent", "orders_against_torch", "statistics", "ties_and_borders", "complex"),
    "linalg": _ops(
        "linalg eigen norms complexes triangles",
        *(
            "linalg",
            "factorise",
            "matrices_against_torch",
            "ties_and_borders",
            "complex",
            "native_blocks",
            "cut_products",
        ),
    ),
    "solvers": _ops(
        "lu solve factorise fft",
        *("factorise", "matrices_against_torch", "ties_and_borders", "linalg", "fft", "spectra", "complex"),
    ),
    "blocks": _ops(
        "fused fused_loss fused_norm fused_attention",
        *("losses", "native_blocks", "native_rows", "bfloat16", "fused_against_torch", "channels", "cut_products"),
        "nn/test_half_norms",
    ),
    "sequences": _ops(
        "fused_recurrent recurrent_loops recurrent_scan recurrent_steps ctc",
        "ctc",
        "losses",
        "recurrent_steps",
        "engine/test_walks_of_fused_ops",
    ),
    "windows": _ops("conv pool resample", "conv", "volumes", "windows", "compiled_ops"),
    "functions": _ops(
        "special special_functions sparse_products", "special_functions", "sparse", "edges_registry", "blocks"
    ),
    "batches": _ops(
        "vmap/*",
        "func/test_vmap",
        "func/test_views_inside",
        "func/test_vmap_of_windows",
        "func/test_vmap_of_indices",
        whole="tests/func/test_registry_transforms.py",
    ),
    "interiors": Piece(
        tuple(f"ops/{name}.py" for name in ("core", "complex_input", "expects", "narrow")),
        (
            "tests/ops/test_primitives.py",
            "tests/ops/test_complex.py",
            "tests/ops/test_bfloat16.py",
            "tests/ops/test_axes.py",
            "tests/ops/test_refusals.py",
            "tests/ops/test_shape_rules.py",
        ),
        rules=True,
    ),
    "kernels": Piece(
        ("ops/kernels/*.py",),
        tuple(
            f"tests/ops/test_{name}.py"
            for name in (
                "kernels",
                "blocks",
                "native_blocks",
                "native_rows",
                "channels",
                "cut_products",
                "complex",
                "conv",
                "activations_against_torch",
                "elementwise_rules",
                "shape_rules",
                "ways_of_kernels",
            )
        ),
        rules=True,
    ),
    "fusion": Piece(
        ("compile/plan/fusion.py",),
        (
            "tests/compile/llvm/test_fusion_groups.py",
            "tests/compile/llvm/test_fused_loops.py",
            "tests/compile/ir/test_golden_graphs.py",
            *("-k", "not microseconds"),
        ),
    ),
    "guards": Piece(
        ("compile/front/calls/guards.py", "compile/front/state/edges.py"),
        (
            "tests/compile/front/test_guard_terms.py",
            "tests/compile/front/test_guards.py",
            "tests/compile/front/test_state_and_guards.py",
        ),
    ),
    "equations": Piece(
        ("engine/terms.py", "optim/equations.py", "optim/in_place.py"),
        ("tests/optim/test_rules_written_out.py", "tests/optim/test_rules.py"),
    ),
    "optimizers": Piece(
        tuple(f"optim/{name}.py" for name in OPTIMIZERS),
        (
            "tests/optim/test_optimizers_against_torch.py",
            "tests/optim/test_signatures_against_torch.py",
            "tests/optim/test_optimizer_options.py",
            "tests/optim/test_optimizer_parts.py",
            "tests/optim/test_lbfgs_against_torch.py",
            "tests/optim/test_averages_and_accumulation.py",
            "tests/optim/test_accumulation_by_hand.py",
        ),
    ),
    "checkpoint": Piece(
        ("train/kept/keeping.py", "train/kept/checkpoint.py"),
        (
            "tests/train/test_checkpoint_parts.py",
            "tests/train/test_checkpoint_file.py",
            "tests/train/test_checkpoint_mismatch.py",
        ),
    ),
    "cache": Piece(
        (
            "compile/kept/files.py",
            "compile/kept/private.py",
            "compile/llvm/objects/machine.py",
            "compile/native/cache.py",
            "compile/native/cache_entry.py",
        ),
        (
            "tests/compile/llvm/test_machine.py",
            "tests/compile/native/test_cache_entries.py",
            "tests/compile/native/test_cache_trust.py",
            "tests/compile/native/test_native_cache.py",
            *("-k", "not hash_seeds and not many_writers"),
        ),
    ),
    "schedules": Piece(
        ("optim/lr_scheduler/*.py",),
        (
            "tests/optim/test_schedules_against_torch.py",
            "tests/optim/test_signatures_against_torch.py",
            "tests/optim/test_schedule_options.py",
            "tests/optim/test_groups_added_later.py",
        ),
    ),
}
