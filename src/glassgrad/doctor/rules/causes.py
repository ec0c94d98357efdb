"""Causes and their consequences: a small graph of findings that explain other findings (`errors/causes.toml`)."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from glassgrad import errors
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.rules.rule import SEVERITIES


@functools.cache
def _table() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(Path(errors.__file__).with_name("causes.toml").read_text(encoding="utf-8"))


@functools.cache
def _members(group: str) -> frozenset[str]:
    """Return the titles of a group, such as "@loss"; a title is a group of its own."""
    return _all_of(_table()["groups"][group[1:]]) if group.startswith("@") else frozenset({group})


def _all_of(groups: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(_members, groups))


@functools.cache
def explains() -> dict[str, frozenset[str]]:
    """Return, for each cause, the findings that it explains if both occur and the cause stands above them."""
    return {cause: _all_of(groups) for cause, groups in _table()["explains"].items()}


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with causes first, then their consequences, each with its cause, then mere information.

    A cause is as severe as the worst finding that it explains, also one that is mere information by itself. Of equal
    findings, one that only shows in the numbers comes after those that name a place to mend.

    Example:
        >>> rows = Finding("loss does not fall", "warning", "", ""), Finding("weights all alike", "error", "", "")
        >>> [(one.rule, one.because) for one in ranked(rows)]
        [('weights all alike', ''), ('loss does not fall', 'weights all alike')]
    """
    found = list(findings)
    serious = {one.rule: one for one in reversed(found) if one.severity != "info" or one.rule in explains()}
    because = {one.rule: cause for one in found if (cause := _cause(one.rule, serious))}
    told = [replace(one, because=because.get(one.rule, "")) for one in found]

    def rank(one: Finding) -> tuple[int, int, bool]:
        follows = [SEVERITIES.index(other.severity) for other in told if other.because == one.rule]
        worst = min([SEVERITIES.index(one.severity), *follows])
        if SEVERITIES[worst] == "info":
            return 2, 0, False
        return (1, SEVERITIES.index(one.severity), False) if one.because else (0, worst, one.rule in _members("@vague"))

    return tuple(sorted(told, key=rank))


def _cause(rule: str, serious: Mapping[str, Finding]) -> str:
    """Return the finding that explains another: the first in the order of the table, or the cause of that one."""
    for one, follows in explains().items():
        if one == rule:
            return ""  # only findings above a cause explain it, so no two explain each other
        if one in serious and rule in follows:
            return _cause(one, serious) or one
    return ""
