"""The pieces of the core whose mutants are tried together, each with the tests that should notice them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/glassgrad"


@dataclass(frozen=True)
class Piece:
    """Files whose mutants are tried together, as patterns under the package, and pytest's arguments for their tests."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self) -> list[str]:
        """Return the files, relative to the package."""
        base = ROOT / PACKAGE
        return sorted({path.relative_to(base).as_posix() for one in self.sources for path in base.glob(one)})


OPTIMIZERS = (
    "optimizer", "sgd", "adam", "adadelta", "adafactor", "adagrad", "adamax", "asgd", "lbfgs", "lion", "muon", "nadam",
    "radam", "rmsprop", "rprop", "sparse_adam", "accumulate", "ema", "swa_utils", "update",
)  # fmt: skip  # a table

# The tests are the few fast ones that are about these files; what only the whole suite would notice counts as survived.
PIECES = {
    "tape": Piece(
        ("engine/tape.py", "engine/plain_walk.py"),
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
        ("compile/front/guards.py", "compile/front/edges.py"),
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
        ("compile/native/cache.py", "compile/native/cache_entry.py", "compile/native/private.py"),
        (
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
