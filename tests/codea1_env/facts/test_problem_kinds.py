from __future__ import annotations

import pytest

from codea1_agents.prompts import load_prompts
from codea1_agents.scripted.input_texts import TEXT_INPUTS
from codea1_env.facts.answers import OutputForm
from codea1_env.facts.problem_kinds import RUN, ProblemKind, kind_of, programs_of
from codea1_env.sandbox.inside import script


@pytest.mark.parametrize("kind", ProblemKind)
def test_each_kind_is_known_wherever_kinds_have_tables(kind: ProblemKind) -> None:
    programs = programs_of(kind)
    assert load_prompts().forms[kind].keys() == {"program_form", "unit", "test_form"}
    assert {each.kind for each in programs.scripts} <= {kind}
    assert [each.output for each in programs.scripts] == (list(OutputForm) if programs.scripts else [])
    prints = bool(programs.scripts)
    assert (kind in script._ENTRY_POINTS) is (kind in TEXT_INPUTS) is bool(programs.receives) is prints
    assert (programs.given_as is not None) is prints
    assert programs.fits(RUN) or kind is ProblemKind.METHOD


def test_the_kind_of_an_entry_point_is_that_which_it_fits() -> None:
    for entry_point in ("f", "Solution().f"):
        assert programs_of(kind_of(entry_point)).fits(entry_point)
        assert not programs_of(ProblemKind.STDIN).fits(entry_point)
