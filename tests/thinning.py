"""Wide tables of which `make test` runs a part and `make test-slow` the whole.

A table of ops, samples and dtypes grows with the library, but nobody runs a suite that takes longer than six minutes.
Of the tests named here, every n-th case of each op stays in the suite (every n-th case if a test is not about ops),
always including the first one; the others, and long tests, are marked `slow`. Tests that find the most mistakes per
second stay complete.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

# File under tests/, with or without a test's name: of how many cases one stays.
ONE_OF: dict[str, int] = {
    "cli/test_bad_input.py::test_a_disk_without_room_for_the_run": 2,
    "cli/test_train_plane.py::test_points_from_beginning_to_end": 2,
    "cli/test_train_text.py::test_names_of_whole_word_models": 3,
    "compat/test_grad_names.py::test_name": 4,
    "compat/test_idioms.py::test_a_script_prints_the_same": 3,
    "compat/test_processes_of_scripts.py::test_actors_share_a_model_and_an_optimizer": 2,
    "compat/test_processes_of_scripts.py::test_four_processes_train_one_model": 2,
    "compat/test_promotion.py::test_compiled_functions_give_the_dtypes_of_eager_ones": 4,
    "compat/test_promotion.py::test_one_operand": 3,
    "compat/test_promotion.py::test_two_operands": 6,
    "compat/test_torch_scripts.py::test_fifty_losses_agree": 2,
    "compat/test_torch_scripts.py::test_scripts_run_from_the_command_line_without_pytorch": 3,
    "compile/c/test_backend_c.py::test_convolutions_of_many_shapes": 2,
    "compile/c/test_exported_steps.py::test_a_run_goes_on_in_python": 3,
    "compile/c/test_exported_steps.py::test_other_compilers_agree": 4,
    "compile/c/test_exported_steps.py::test_products_may_come_from_a_blas": 3,
    "compile/c/test_exported_steps.py::test_sanitizers_find_nothing": 10,
    "compile/c/test_exported_steps.py::test_the_makefile_runs_the_example": 2,
    "compile/c/test_exported_steps.py::test_threads_share_products": 2,
    "compile/c/test_exported_steps.py::test_twenty_steps_agree": 4,
    "compile/c/test_other_chips.py::test_on_64_bit_arm": 3,
    "compile/c/test_registry_c.py::test_edges": 2,
    "compile/c/test_registry_c.py::test_samples": 6,
    "compile/front/test_aliasing.py::test_compiled_functions_share_memory_as_eager_mode_does": 3,
    "compile/front/test_copies_and_pickles.py::test_compiled_modules": 3,
    "compile/front/test_flows_compiled.py::test_flows_train_as_in_eager_mode": 3,
    "compile/front/test_hostile_shapes.py::test_programs_over_hostile_shapes": 2,
    "compile/front/test_index_gradients_compiled.py::test_the_gradient_of_a_sum": 4,
    "compile/front/test_labels_compiled.py::test_wrong_labels_change_nothing": 6,
    "compile/front/test_labels_compiled.py::test_wrong_labels_of_every_dtype_change_nothing": 12,
    "compile/front/test_random_programs.py::test_a_random_program_is_that_of_eager_mode": 2,
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
    "compile/llvm/test_random_graphs.py::test_compiled_graphs_agree_with_numpy": 4,
    "compile/llvm/test_recomputed.py::test_layers_with_a_shape_of_their_own": 2,
    "compile/llvm/test_recomputed.py::test_what_a_plan_needs_is_known_before_code_is_written": 2,
    "compile/llvm/test_recurrent_steps.py::test_compiled_layers_agree_with_eager_mode": 5,
    "compile/llvm/test_registry_native.py::test_no_call_of_the_host_is_silent": 2,
    "compile/llvm/test_registry_native.py::test_samples": 7,
    "compile/llvm/test_row_products.py::test_products_of_few_rows_are_right_in_every_corner": 2,
    "compile/llvm/test_scans.py::test_scans_agree_with_numpy": 4,
    "compile/llvm/test_sixteen_registers.py::test_ends_of_rows_are_written_and_nothing_behind_them": 3,
    "compile/llvm/test_units.py::test_kernels_compute_what_numpy_does": 7,
    "compile/llvm/test_windows_native.py::test_convolution_and_its_transposes": 6,
    "compile/llvm/test_winograd.py::test_all_passes_agree_with_float64": 5,
    "compile/native/test_forked_children.py::test_a_child_that_is_forked_while_another_thread_runs_a_step": 2,
    "compile/native/test_native_runtime.py::test_a_training_step_updates_its_state": 2,
    "compile/native/test_native_runtime.py::test_runs_are_equal_to_the_last_bit": 2,
    "compile/plan/test_memory_plan.py::test_an_array_that_is_given_up_too_early_is_seen": 2,
    "compile/plan/test_memory_plan.py::test_arrays_that_are_alive_share_no_bytes": 3,
    "compile/source/test_numbers_without_dimensions.py::test_a_number_can_be_written_to": 8,
    "compile/source/test_printed_brackets.py::test_brackets_are_where_they_must_be": 12,
    "compile/source/test_source_loops.py::test_a_transformer_of_four_blocks": 2,
    "compile/source/test_source_programs.py::test_programs_with_loops_agree_with_the_tape": 2,
    "distributed/test_collectives.py::test_every_collective_gives_what_numpy_gives": 2,
    "distributed/test_guard.py::test_a_rank_that_computes_is_waited_for": 2,
    "distributed/test_guard.py::test_ends_all_and_names_the_rank": 4,
    "distributed/test_guard.py::test_signs_of_life": 2,
    "distributed/test_launch.py::test_a_rank_that_fails_ends_all": 4,
    "distributed/test_launch.py::test_an_interrupt_ends_all_ranks": 2,
    "distributed/test_trainer.py::test_ranks_do_what_one_process_does": 2,
    "distributed/test_trainer.py::test_ranks_that_differ_are_told": 2,
    "distributed/test_training.py::test_every_optimizer_in_single_precision": 2,
    "distributed/test_training.py::test_ranks_train_as_one_with_the_whole_batch": 2,
    "distributions/test_against_torch.py::test_notes": 3,
    "docs/test_notebooks.py::test_a_guide_runs_as_a_notebook": 3,
    "doctor/test_nan_calls.py::test_steps_and_losses_are_those_of_the_plain_loop": 3,
    "doctor/test_nan_watch.py::test_the_check_in_a_compiled_step_changes_no_bit": 3,
    "doctor/world/test_world.py::test_an_unusual_training_raises_no_alarm": 4,
    "doctor/world/test_world.py::test_the_cause_is_named_and_the_twin_silent": 4,
    "doctor/world/test_world.py::test_the_cause_is_named_in_pytorch_too": 6,
    "formats/test_formats.py::test_a_run_of_the_command_goes_on": 2,
    "func/test_nesting_against_torch.py::test_nested_transforms_agree_with_torch": 4,
    "func/test_registry_transforms.py": 12,
    "func/test_registry_transforms.py::test_derivatives_inside_vmap_agree_with_a_loop": 12,
    "func/test_writes_inside.py::test_the_numbers_are_those_of_the_twin": 4,
    "interop/test_sklearn.py::test_quick_checks_of_scikit_learn": 2,
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
    "ops/test_native_attention.py::test_a_forked_child_computes_the_same": 2,
    "ops/test_opinfo.py::test_ops_agree_with_pytorch": 16,
    "ops/test_opinfo.py::test_some_ops_in_other_dtypes": 2,
    "ops/test_places.py::test_a_compiled_step_refuses_the_same": 6,
    "ops/test_primitives.py::test_float32_stays_float32": 2,
    "ops/test_primitives.py::test_memory_layout_does_not_matter_and_inputs_are_left_alone": 2,
    "ops/test_recurrent_scan.py::test_derivatives_of_loops_are_central_differences": 6,
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
    "playground/test_panes.py::test_kernels_and_their_cost": 4,
    "repo/test_generation_peers.py::test_a_peer_draws_what_we_draw": 2,
    "repo/test_mutants.py::test_functions_that_exist_change_in_place": 3,
    "repo/test_mutants.py::test_what_an_import_computes_is_imported_again": 2,
    "repo/test_recipes.py::test_what_a_recipe_adds_works_everywhere": 2,
    "report/test_pictures.py::test_every_picture_is_drawn_for_flat_and_for_deep_nets": 2,
    "report/test_playground_in_browser.py::test_every_pane_is_accessible_and_fits": 4,
    "systems/test_other_systems.py::test_commands_on_a_console_of_windows": 2,
    "systems/test_other_systems.py::test_native_code_and_files": 2,
    "systems/test_other_systems.py::test_what_is_printed_can_be_printed": 3,
    "tasks/test_character_tasks.py::test_a_run_that_was_stopped_ends_bit_for_bit_like_one_that_was_not": 3,
    "tasks/test_character_tasks.py::test_dropout_makes_a_difference_and_begins_with_the_seed": 2,
    "tasks/test_character_tasks.py::test_the_loss_falls_and_compiled_steps_are_the_eager_ones": 2,
    "tasks/test_engines.py::test_a_checkpoint_of_one_engine_is_gone_on_with_by_another": 2,
    "tasks/test_engines.py::test_fifty_steps_on_digits_agree": 2,
    "train/test_checkpoint_parts.py::test_a_plain_loop_goes_on_bit_for_bit": 2,
    "train/test_trainer.py::test_a_dtype_is_what_the_forward_pass_computes_in": 2,
    "utils/test_processes.py::test_a_pool_returns_tensors": 2,
    "utils/test_processes.py::test_what_is_sent_is_shared": 2,
    "verify/test_check_my_backward.py::test_the_first_wrong_line_is_named": 3,
}

# Tests that take seconds each; what they are about is tested by shorter ones, too.
LONG = frozenset(
    {
        "cli/test_monitor_option.py::test_the_directory_holds_the_record_and_four_pictures_and_the_end_says_so",
        "cli/test_train_text.py::test_a_text_from_beginning_to_end",
        "compile/front/test_aliasing.py::test_chains_share_memory_as_eager_mode_does",
        "compile/llvm/test_amx.py::test_every_index_edge_and_pack_is_right",
        "compile/llvm/test_random_graphs.py::test_products_of_all_layouts",
        "compile/llvm/test_recomputed.py::test_a_limit_of_memory_is_kept_by_computing_little_twice",
        "compile/llvm/test_recomputed.py::test_layers_with_a_shape_of_their_own",
        "compile/llvm/test_recomputed.py::test_memory_of_an_eager_chain_grows_with_the_root_of_its_length",
        "compile/native/test_compile_time.py::test_planning_takes_the_same_for_each_layer",
        "compile/native/test_native_cache.py::test_processes_with_other_hash_seeds_make_the_same_program",
        "compile/source/test_source_loops.py::test_random_stacks_agree_with_the_tape_rolled_up_or_not",
        "distributed/test_trainer.py::test_a_run_goes_on_with_another_number_of_ranks",
        "distributed/test_trainer.py::test_train_shows_and_writes_one_run",
        "explanation/test_draw.py::test_two_thousand_boxes_do_not_hang",
        "fuzz/test_programs.py::test_autocast_is_off_by_its_rounding_only",
        "interop/test_scipy_functions.py::test_every_function_is_right_or_refuses_whatever_the_version",
        "ops/test_autocast_all.py::test_ops_of_both_lists_are_within_bfloat16s_rounding_of_pytorchs",
        "repo/test_bench_footprint.py::test_sizes_are_those_of_the_files",
        "repo/test_mutants.py::test_of_a_piece_of_rules_only_what_the_table_reaches_is_changed",
        "report/test_page_in_browser.py::test_histograms_are_marked_with_round_numbers",
        "report/test_playground_in_browser.py::test_a_new_run_replaces_one_that_hangs",
        "report/test_playground_in_browser.py::test_a_reload_and_another_tab_lose_nothing",
        "report/test_playground_in_browser.py::test_a_server_that_is_gone_is_waited_for",
        "report/test_playground_in_browser.py::test_numbers_are_dragged",
        "report/test_playground_in_browser.py::test_values_follow_the_keys",
        "train/test_trainer_resume.py::test_killed_at_random_moments_a_run_resumes_to_the_identical_end",
        "types/test_checkers.py::test_a_training_script_is_clean_and_mistakes_are_found",
    }
)

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
        if where in LONG:
            out.append(item)
            continue
        if (each := divisor(where)) == 1 or not hasattr(item, "callspec"):
            continue
        params = item.callspec.params
        op = getattr(params.get("case"), "prim", None) or params.get("prim")
        group = (where, getattr(op, "name", ""))
        if seen[group] % each:
            out.append(item)
        seen[group] += 1
    return out
