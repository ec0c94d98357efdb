"""Messages about layers, losses and optimizers."""

from __future__ import annotations

from glassgrad.errors.kinds import (
    ArgumentError,
    AutogradError,
    GlassgradError,
    IdleStepWarning,
    IndexRangeError,
    KindError,
    Message,
    MissingError,
    RemovalWarning,
    ShapeError,
)

STATE_DICT_MISMATCH = Message(
    AutogradError,
    "state_dict does not fit {model}:{missing}{unexpected}{wrong}\nNext: {next}.",
)

STATE_DICT_KIND = Message(
    KindError,
    "{model}.load_state_dict expects a dictionary of tensors by name, given a {kind} ({where}).{next}",
)

BETWEEN_LAYERS = Message(
    ShapeError,
    "\nThe layer is {layer}; it was given {shape}{source}.",
)

OPTIMIZER_NAME = Message(ArgumentError, "get_optimizer: no optimizer is called {given!r}.\nExpected: one of {known}.")

STEP_WITHOUT_GRADIENTS = Message(
    IdleStepWarning,
    "{owner}.step() changed nothing: none of its {count} parameters has a gradient ({where}).\n"
    "Next: call loss.backward() before step() and zero_grad() only after it, and give the optimizer the parameters of "
    "the model that computes the loss.",
)

EMPTY_PARAMETERS = Message(
    ArgumentError,
    "{owner} got no parameters ({where}).\nNext: pass model.parameters() of a model that has some.",
)

NOTHING_TO_CLIP = Message(
    IdleStepWarning,
    "clipping changed nothing: it got a {kind} that yields no parameters ({where}).\n"
    "Next: call model.parameters() here again; the first loop over its result used it up.",
)

NOT_A_LEAF_PARAMETER = Message(
    ArgumentError,
    "{owner} can only update leaf tensors; parameter {index} is the result of {op} ({where}).\n"
    "Next: pass the tensors that you created, not tensors computed from them.",
)

EMBEDDING_INDEX = Message(
    IndexRangeError,
    "embedding: index {given} at position {position} is out of range for a table of {rows} rows ({where}).\n"
    "Expected: indices between 0 and {last}; negative ones do not count from the end here.\n"
    "Next: {advice}.",
)

EMBEDDING_KIND = Message(
    KindError,
    "embedding expects indices as integers, given dtype {dtype} ({where}).\nNext: convert them with .long().",
)

NO_PROBABILITIES = Message(
    ArgumentError,
    "binary_cross_entropy expects probabilities between 0 and 1, given {given} ({where}).\n"
    "Next: apply a sigmoid, or better pass the logits to binary_cross_entropy_with_logits.",
)

WRONG_INPUT = Message(
    ShapeError,
    "{layer} at {where} expects input of shape {expected}, given {given}.",
)

PARAMS_NOT_ITERABLE = Message(
    KindError,
    "{owner} expects an iterable of tensors, given {given} ({where}).\nNext: {instead}.",
)

PARAMETER_KIND = Message(
    KindError,
    "{owner} can only update tensors; parameter {index} is a {kind} ({where}).",
)

PARAMETER_TWICE = Message(
    ArgumentError,
    "{owner}: parameter {index} is already in a group ({where}).\nExpected: each parameter once.",
)

PARAMETER_COMPLEX = Message(
    KindError,
    "{owner}: parameter {index} has dtype {dtype} ({where}).\nExpected: real parameters.\n"
    "Next: keep real and imaginary part in two of them, or in one with view_as_complex(parameter).",
)

PARAMETER_READ_ONLY = Message(
    ArgumentError,
    "{owner}.step() at {where}: {what}, of shape {shape}, cannot be written: its memory is read-only. Nothing was changed.\n"
    "Next: replace the memory by a copy, p.data = p.data.clone().",
)

UPDATE_MISSING = Message(
    GlassgradError,
    "{owner} has no update(): define update(self, p, g, state, group) and return the new p.",
)

UPDATE_RESULT = Message(
    KindError,
    "update() of {owner} returned {given}.\nExpected: the new value of p, computed from p, g, state and group.",
)

RULE_NEEDS_NUMBERS = Message(
    GlassgradError,
    "the rule of an optimizer needs the values of an array at {where}, but a rule computes on symbolic arrays.\n"
    "Next: choose element by element, where(condition, a, b).",
)

RULE_OPERAND = Message(
    KindError,
    "the rule of an optimizer computes with {given} at {where}.\n"
    "Expected: the parameter, the gradient, arrays and numbers of the state, options of the group, and Python numbers.",
)

OPTIMIZER_STATE_MISMATCH = Message(
    ArgumentError,
    "the state does not fit this {owner} ({where}): its groups have {given} parameters, expected {expected}.",
)

OPTIMIZER_STATE_PLACES = Message(
    ArgumentError,
    "the state does not fit this {owner} ({where}): it is for the parameters numbered {given}, but there are {expected}.",
)

OPTIMIZER_SLOT_SHAPE = Message(
    ArgumentError,
    "the state of this {owner} does not fit its parameters: {name} has shape {given}, expected {expected}.\n"
    "Next: load the state of an optimizer of the same parameters, in the same order.",
)

AVERAGES_MISMATCH = Message(
    ArgumentError,
    "the state does not fit this {owner} ({where}); nothing was changed. Missing, unexpected or of another shape: {names}.",
)

OPTIMIZER_OPTIONS_MISSING = Message(
    ArgumentError,
    "the state does not fit this {owner} ({where}): its groups lack {missing}.\n"
    "Next: load it into an optimizer of the class that it was saved from.",
)

FORWARD_MISSING = Message(
    GlassgradError,
    "{owner} was called but has no forward().\nNext: define forward(self, ...) in it.",
)

INIT_ARGUMENTS = Message(
    KindError,
    "{owner}: Module.__init__ takes no arguments, given {given} ({where}).\n"
    "Next: handle them in your own __init__; call_super_init = True passes them to the next base class.",
)

METHOD_MISSING = Message(
    GlassgradError,
    "{owner} has no {method}() ({where}).\nNext: define get_extra_state(self) and set_extra_state(self, state).",
)

NO_SUCH_SUBMODULE = Message(
    MissingError,
    "{owner} cannot have a module set at {name!r} ({where}).\n"
    "Expected: a module, and a name that is free or belongs to a module; with strict=True, the name of a module.",
)

NO_SUCH_DEVICE = Message(
    ArgumentError,
    "device {given!r} is not available ({where}): glassgrad computes on the cpu.\nNext: use 'cpu', or leave the device out.",
)

ONE_VALUE_PER_CHANNEL = Message(
    ShapeError,
    "batch or instance norm of shape {given} at {where}: one value for each channel has no variance to normalise by.\n"
    "Next: train with more than one example (drop_last=True in the loader), or call model.eval() to use the running "
    "statistics.",
)

MASK_AND_CAUSAL = Message(
    ArgumentError,
    "attn_mask and is_causal=True were both given ({where}).\n"
    "Next: leave out is_causal and put the triangle into the mask: mask & ones(L, S).tril().",
)

CONTAINER_KEY = Message(
    ArgumentError,
    "{owner} cannot hold an entry under the key {given!r} ({where}).\n"
    "Expected: a string without dots that is not yet an attribute of {owner}, because the key becomes an attribute.",
)

CONTAINER_ENTRY = Message(
    KindError,
    "{owner} at {where} holds entries of type {expected}, given a {kind}.",
)

PARAMETER_REPLACED = Message(
    KindError,
    "{owner}.{name} is a Parameter, and a plain tensor was assigned to it ({where}), which no optimizer would train.\n"
    "Next: assign glassgrad.nn.Parameter(...), or write the values: {name}.data = ... .",
)

UNKNOWN_DEVICE = Message(
    ArgumentError, "no kind of device is called {given!r} ({where}).\nExpected: {kinds}, optionally with a number."
)

NOTHING_TO_PARAMETRIZE = Message(
    ArgumentError,
    "{owner} has no {name!r} to which this applies ({where}).\n"
    "Next: give the name of one of its own parameters; [name for name, _ in module.named_parameters()] lists them.",
)

PARAMETRIZED_DIFFERS = Message(
    ShapeError,
    "the parametrization of {owner}.{name} gives {given}, expected {expected} ({where}).\n"
    "Next: return a tensor of the same shape and dtype, or pass unsafe=True.",
)

MISSING_NAME = Message(
    MissingError,
    "{module} has no {name!r}.{nearest}",
)

DEPRECATED = Message(
    RemovalWarning,
    "{name} is deprecated since glassgrad {since} and will be removed in {removed_in}; write {instead}",
)


class LossBroadcastWarning(UserWarning):
    """The input and target of a loss have different shapes that broadcast."""


LOSS_BROADCASTS = Message(
    LossBroadcastWarning,
    "{op}: the input has shape {input}, the target {target} ({where}): they broadcast, which is rarely intended.\n"
    "Next: give both the same shape, for example by .squeeze(-1) or .unsqueeze(-1) on one of them.",
)

LOSS_SHAPES = Message(
    ShapeError,
    "{op}: the input has shape {input}, the target {target} ({where}).\nExpected: a target of shape {expected}.",
)

CTC_SIZES = Message(
    ShapeError,
    "ctc_loss: log_probs holds {examples} examples, targets {targets}, input_lengths {inputs}, target_lengths {lengths} "
    "({where}).\nExpected: the same number of each.",
)

NONFINITE_NORM = Message(
    AutogradError,
    "the norm of all gradients is {norm} ({where}), so it cannot be clipped.\n"
    "Next: look for the parameter whose gradient is not finite, or leave out error_if_nonfinite.",
)

UNKNOWN_OPTION = Message(
    KindError,
    "{owner} has no option {name!r} ({where}).\nExpected: {expected}.",
)

MUON_NEEDS_MATRICES = Message(
    ArgumentError,
    "Muon is for matrices; parameter {index} has shape {given} ({where}).\n"
    "Next: give vectors, embeddings and convolutions to another optimizer, such as AdamW.",
)

LBFGS_ONE_GROUP = Message(
    ArgumentError,
    "LBFGS steps along one direction for all parameters and takes one group of them ({where}).",
)

CLOSURE_NEEDED = Message(
    ArgumentError,
    "{owner}.step() at {where} needs a closure, because it computes the loss several times.\n"
    "Next: optimizer.step(closure), where closure() clears the gradients, calls backward() and returns the loss.",
)

NOT_AN_OPTIMIZER = Message(
    KindError,
    "{owner} expects an optimizer, given a {kind} ({where}).",
)

NEW_GROUP = Message(
    ArgumentError,
    "{owner}: a group was added to the optimizer ({where}), and {name} was given for {count} groups as a list.\n"
    "Next: give {name} once for all groups, or build a new schedule after add_param_group.",
)

NO_INITIAL_LR = Message(
    ArgumentError,
    "{owner} should continue from a last_epoch, but the optimizer's groups have no 'initial_lr' ({where}).\n"
    "Next: load the optimizer's state first, or leave last_epoch at -1.",
)

ANOTHER_OPTIMIZER = Message(
    ArgumentError,
    "{owner} got schedules of different optimizers ({where}).\nExpected: all of one.",
)

SCHEDULE_OVER = Message(
    ArgumentError,
    "{owner} was built for {total} steps, but was called for step {step}.\n"
    "Next: give it the number of steps of the training, or stop calling step().",
)
