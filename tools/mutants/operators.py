"""The kinds of changes: those of cosmic-ray that make plausible mistakes, and two of our own.

A place gets only the few changes that tests could distinguish: a number becomes the next one, but not also the previous
one; a condition is negated by replacing its comparison or dropping its `not`, if it has one; a constant result becomes
another constant, not None. An assignment of a module or a class is not dropped, because the import would fail.
`strict=True` stays, because it can only fail if the code is wrong. The samples of ops stay, because they are the inputs
of the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# Of cosmic-ray's operators `<` for `<=` and `*` for `/`, but no `<<`.
CHOSEN = re.compile(
    r"core/(AddNot|NumberReplacer|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse|ReplaceFalseWithTrue"
    r"|ReplaceBreakWithContinue|ReplaceContinueWithBreak|ZeroIterationForLoop|ReplaceUnaryOperator_Delete_\w+"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_Mul|Pow_Mul)"
    r"|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Is_IsNot|IsNot_Is|Lt_Gt|Gt_Lt))"
)
# Comparisons that an operator above negates, and so AddNot does not have to.
_NEGATED = {"==", "!=", "<", ">", "is", "is not"}
_CONSTANT = re.compile(r"None|True|False|[\d.]+")

Places = Iterator[tuple[Any, Any]]


class DropStatement:
    """Leaves out a statement that is there for its effect."""

    def mutation_positions(self, node: Any) -> Places:
        """Yield the node's place if it is such a statement."""
        if getattr(node.parent, "type", None) != "simple_stmt":
            return
        assigns = node.type == "expr_stmt" and "=" in node.get_code()  # not a type alone
        if node.type in {"atom_expr", "del_stmt", "raise_stmt"} or (assigns and _is_in_function(node)):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return what takes its place."""
        return _word("pass", node)


class ReturnNone:
    """Lets a function return None."""

    def mutation_positions(self, node: Any) -> Places:
        """Yield the node's place if it returns something else."""
        if node.type == "return_stmt" and not _CONSTANT.fullmatch(node.children[1].get_code().strip()):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Return what takes its place."""
        return _word("return None", node)


class Sparing:
    """An operator without the places where another one makes the same mistake."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole

    def mutation_positions(self, node: Any) -> Places:
        """Yield the places that are left."""
        found = list(self.whole.mutation_positions(node))
        name = type(self.whole).__name__
        if found and _is_sample(node):
            found = []
        if name == "NumberReplacer":
            found = [] if _is_what_remains(node) else found[:1]
        if name.startswith("ReplaceBinaryOperator") and node.parent.type not in {"arith_expr", "term", "power"}:
            found = []  # the star of a parameter list
        if name.startswith(("ReplaceTrue", "ReplaceFalse")) and found and _is_check(node):
            found = []
        if name == "AddNot" and found and _is_negated(node.children[2 if node.type == "test" else 1]):
            found = []
        yield from found

    def mutate(self, node: Any, index: int) -> Any:
        """Return what takes the node's place."""
        return self.whole.mutate(node, index)


def operators() -> list[Any]:
    """Return the operators that mutants are made with."""
    import cosmic_ray.plugins

    names = sorted(name for name in cosmic_ray.plugins.operator_names() if CHOSEN.fullmatch(name))
    return [*(Sparing(cosmic_ray.plugins.get_operator(name)()) for name in names), DropStatement(), ReturnNone()]


def _is_negated(condition: Any) -> bool:
    """Tell whether a condition is one comparison or one `not`, which another operator turns around."""
    if condition.type == "comparison":
        return condition.children[1].get_code().strip() in _NEGATED
    return bool(condition.type == "not_test")


def _is_check(node: Any) -> bool:
    """Tell whether a value stands at `strict=`, where zip checks what the code around it makes sure of."""
    return node.parent.type == "argument" and node.parent.children[0].get_code().strip() == "strict"


def _is_what_remains(node: Any) -> bool:
    """Tell whether a number is the 1 of `reshape(-1)`, where NumPy reads every negative number alike."""
    sign = node.get_previous_leaf()
    while node is not None and node.type != "trailer":
        node = node.parent
    before = node and node.get_first_leaf().get_previous_leaf()
    return bool(sign and sign.value == "-" and before and before.value in {"reshape", "reshape_p"})


def _is_sample(node: Any) -> bool:
    """Tell whether a value belongs to what an op says of itself or to its samples, which its tests are made of."""
    while node is not None:
        parts = node.children if node.type in {"argument", "atom_expr", "expr_stmt"} else []
        names = [part.get_code().strip().rpartition(".")[2] for part in parts[:2]]
        if {*names[:1]} & {"samples", "sample_params", "EDGES", "S", "reals"} or names[1:] == ["describe"]:
            return True
        node = node.parent
    return False


def _is_in_function(node: Any) -> bool:
    while node is not None and node.type not in {"funcdef", "lambdef"}:
        node = node.parent
    return node is not None


def _word(text: str, node: Any) -> Any:
    from parso.python.tree import Keyword

    return Keyword(text, node.start_pos, node.get_first_leaf().prefix)
