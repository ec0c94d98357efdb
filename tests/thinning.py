"""Wide tables of which `make test` runs a part and `make test-slow` the whole.

A table of ops, samples and dtypes grows with the library, but nobody runs a suite that takes longer than six minutes.
Of the tests named here, every n-th case of each op stays in the suite (every n-th case if a test is not about ops),
always including the first one; the others are marked `slow`. Tests that find the most mistakes per second stay
complete.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

# File under tests/, with or without a test's name: of how many cases one stays.
ONE_OF: dict[str, int] = {
    "cli/test_train_text.py::test_names_of_whole_word_models": 3,
    "compat/test_grad_names.py::test_name": 4,
    "compat/test_idioms.py::test_a_script_prints_the_same": 3,
    "compat/test_promotion.py::test_compiled_functions_give_the_dtypes_of_eager_ones": 4,
    "compat/test_promotion.py::test_one_operand": 3,
    "compat/test_promotion.py::test_two_operands": 6,
    "compat/test_torch_scripts.py::test_scripts_run_from_the_command_line_without_pytorch": 3,
    "compile/c/test_exported_steps.py::test_sanitizers_find_nothing": 5,
    "compile/c/test_exported_steps.py::test_twenty_steps_agree": 2,
    "compile/c/test_registry_c.py::test_samples": 2,
    "compile/front/test_aliasing.py::test_compiled_functions_share_memory_as_eager_mode_does": 3,
    "compile/front/test_copies_and_pickles.py::test_compiled_modules": 3,
    "compile/front/test_flows_compiled.py::test_flows_train_as_in_eager_mode": 3,
    "compile/front/test_index_gradients_compiled.py::test_the_gradient_of_a_sum": 4,
    "compile/front/test_labels_compiled.py::test_wrong_labels_change_nothing": 6,
    "compile/front/test_labels_compiled.py::test_wrong_labels_of_every_dtype_change_nothing": 12,
    "compile/front/test_registry_compiled.py::test_backward": 8,
    "compile/front/test_registry_compiled.py::test_forward": 8,
    "compile/front/test_state_table.py::test_state_that_a_step_changes": 12,
    "compile/front/test_torch_modules.py::test_modules_of_many_kinds": 3,
    "compile/front/test_training_steps.py::test_momentum_that_a_schedule_moves_and_averages_of_weights": 3,
    "compile/front/test_training_steps.py::test_schedules_inside_of_the_step": 3,
    "compile/front/test_training_steps.py::test_twenty_steps_are_those_of_eager_mode": 9,
    "compile/front/test_views_of_constants.py::test_views_of_new_tensors_see_every_write": 6,
    "compile/front/test_what_else_is_read.py::test_a_step_that_takes_from_an_iterator_runs_eagerly": 4,
    "compile/llvm/test_fused_loops.py::test_agrees_with_numpy": 3,
    "compile/llvm/test_kept_values.py::test_what_varies_along_some_of_the_inner_axes_is_kept_for_those": 3,
    "compile/llvm/test_pairs.py::test_products_of_all_layouts_are_exact_but_for_one_rounding": 3,
    "compile/llvm/test_recomputed.py::test_layers_with_a_shape_of_their_own": 2,
    "compile/llvm/test_registry_native.py::test_no_call_of_the_host_is_silent": 2,
    "compile/llvm/test_registry_native.py::test_samples": 7,
    "compile/llvm/test_row_products.py::test_products_of_few_rows_are_right_in_every_corner": 2,
    "compile/llvm/test_scans.py::test_scans_agree_with_numpy": 4,
    "compile/llvm/test_units.py::test_kernels_compute_what_numpy_does": 7,
    "compile/llvm/test_windows_native.py::test_convolution_and_its_transposes": 3,
    "compile/native/test_native_runtime.py::test_a_training_step_updates_its_state": 2,
    "compile/native/test_native_runtime.py::test_runs_are_equal_to_the_last_bit": 2,
    "compile/source/test_numbers_without_dimensions.py::test_a_number_can_be_written_to": 8,
    "compile/source/test_printed_brackets.py::test_brackets_are_where_they_must_be": 12,
    "compile/source/test_source_loops.py::test_a_transformer_of_four_blocks": 2,
    "compile/source/test_source_programs.py::test_programs_with_loops_agree_with_the_tape": 2,
    "distributed/test_collectives.py::test_every_collective_gives_what_numpy_gives": 2,
    "distributed/test_guard.py::test_ends_all_and_names_the_rank": 2,
    "distributed/test_launch.py::test_a_rank_that_fails_ends_all": 2,
    "distributed/test_trainer.py::test_ranks_do_what_one_process_does": 2,
    "distributions/test_against_torch.py::test_notes": 3,
    "docs/test_notebooks.py::test_a_guide_runs_as_a_notebook": 3,
    "doctor/test_nan_calls.py::test_steps_and_losses_are_those_of_the_plain_loop": 3,
    "doctor/test_nan_watch.py::test_the_check_in_a_compiled_step_changes_no_bit": 3,
    "func/test_nesting_against_torch.py::test_nested_transforms_agree_with_torch": 4,
    "func/test_registry_transforms.py": 12,
    "func/test_registry_transforms.py::test_derivatives_inside_vmap_agree_with_a_loop": 12,
    "func/test_writes_inside.py::test_the_numbers_are_those_of_the_twin": 4,
    "interop/test_sklearn.py::test_weights_are_repetitions": 3,
    "lessons/test_exercises.py::test_a_mistake_gets_its_hint": 3,
    "nn/test_bad_input.py::test_both_layers_are_named": 3,
    "nn/test_bad_input.py::test_labels": 4,
    "nn/test_half_norms.py::test_values_and_gradients_are_rounded_once": 4,
    "nn/test_layers_against_torch.py::test_compiled_agrees_with_eager": 24,
    "nn/test_layers_everywhere.py::test_dropout_draws_the_same_numbers_eagerly_compiled_and_checkpointed": 3,
    "nn/test_layers_everywhere.py::test_native_code_agrees_with_eager": 24,
    "nn/test_parametrized_weights.py::test_as_in_pytorch": 3,
    "nn/test_pytorchs_own_samples.py::test_modules": 6,
    "onnx/test_export_models.py::test_recurrent_layers_are_one_operator_and_take_any_length": 2,
    "onnx/test_load.py::test_external_data_stays_in_its_folder_and_its_file": 2,
    "onnx/test_load.py::test_sizes_that_a_file_lies_about": 2,
    "ops/test_cut_products.py::test_products_in_every_order_of_memory_are_those_of_numpy": 3,
    "ops/test_dtypes_registry.py": 3,
    "ops/test_dtypes_registry.py::test_size_1_broadcasts_in_every_position": 6,
    "ops/test_exact_means.py::test_of_a_constant_nothing_is_left": 3,
    "ops/test_indexing.py::test_unsigned_numbers_do_not_count_from_the_end": 3,
    "ops/test_kinks.py::test_compiled_derivatives_at_the_edges_are_the_eager_ones": 3,
    "ops/test_kinks.py::test_derivatives_at_kinks_are_pytorchs": 2,
    "ops/test_matrices_against_torch.py::test_forward_mode_agrees_with_the_gradients": 2,
    "ops/test_matrices_against_torch.py::test_values_and_derivatives_are_pytorchs": 5,
    "ops/test_meaning.py::test_masked_fill_keeps_the_dtype": 5,
    "ops/test_meaning.py::test_steps_of_whole_numbers_are_whole_numbers": 3,
    "ops/test_opinfo.py::test_ops_agree_with_pytorch": 16,
    "ops/test_opinfo.py::test_some_ops_in_other_dtypes": 2,
    "ops/test_places.py::test_a_compiled_step_refuses_the_same": 6,
    "ops/test_primitives.py::test_float32_stays_float32": 2,
    "ops/test_primitives.py::test_memory_layout_does_not_matter_and_inputs_are_left_alone": 2,
    "ops/test_recurrent_scan.py::test_derivatives_of_loops_are_central_differences": 3,
    "ops/test_refusals.py::test_a_compiled_step_refuses_the_same": 16,
    "ops/test_shared_results.py::test_compiled_code_shares_what_eager_code_shares": 3,
    "ops/test_sparse.py::test_compiled_and_second_order": 3,
    "ops/test_volumes.py::test_second_order_vmap_and_compiled": 2,
    "optim/test_optimizers_against_torch.py::test_compiled_steps_agree_with_eager_ones_and_do_not_retrace": 6,
    "optim/test_optimizers_against_torch.py::test_own_state_goes_on": 2,
    "optim/test_optimizers_against_torch.py::test_pytorchs_state_goes_on_here": 2,
    "optim/test_options_compiled.py::test_a_changed_option_counts_from_the_next_call_on": 32,
    "optim/test_rules.py::test_a_step_makes_few_calls_and_no_arrays": 4,
    "optim/test_rules.py::test_in_place_is_what_the_equations_say": 2,
    "optim/test_rules_written_out.py::test_rules_agree": 8,
    "repo/test_mutants.py::test_functions_that_exist_change_in_place": 3,
    "tasks/test_character_tasks.py::test_a_run_that_was_stopped_ends_bit_for_bit_like_one_that_was_not": 3,
    "tasks/test_character_tasks.py::test_dropout_makes_a_difference_and_begins_with_the_seed": 2,
    "tasks/test_character_tasks.py::test_the_loss_falls_and_compiled_steps_are_the_eager_ones": 2,
}

# Files of which nothing stays: they are not even collected, unless a test of them is named or slow tests are run.
NONE_OF = frozenset({"ops/test_opinfo_op_by_op.py"})


def covering(*axes: Sequence[Any]) -> list[Any]:
    """Return all combinations of parameters; those that stay in the suite have each value of each axis at least once.

    They are as many as the longest axis is long; the others are marked `slow`.
    """
    kept = {tuple(number % len(axis) for axis in axes) for number in range(max(map(len, axes)))}
    combinations = itertools.product(*map(enumerate, axes))
    return [
        pytest.param(
            *(value for _, value in chosen),
            marks=() if tuple(place for place, _ in chosen) in kept else pytest.mark.slow,
        )
        for chosen in combinations
    ]


def divisor(where: str) -> int:
    """Of how many cases of a test one stays; `where` is its place under tests/, without the parameters."""
    return ONE_OF.get(where) or ONE_OF.get(where.partition("::")[0], 1)


def left_out(items: list[Any]) -> list[Any]:
    """Return the items that `make test` leaves to `make test-slow`, in the order given."""
    seen: Counter[tuple[str, str]] = Counter()
    out = []
    for item in items:
        where = item.nodeid.removeprefix("tests/").split("[")[0]
        if (each := divisor(where)) == 1 or not hasattr(item, "callspec"):
            continue
        params = item.callspec.params
        op = getattr(params.get("case"), "prim", None) or params.get("prim")
        group = (where, getattr(op, "name", ""))
        if seen[group] % each:
            out.append(item)
        seen[group] += 1
    return out
