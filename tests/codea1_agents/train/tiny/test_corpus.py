from __future__ import annotations

import re

import pytest

from codea1_agents.train.tiny.corpus import Corpus, CorpusRules, Document
from codea1_agents.train.tiny.family import Split, Variant, answer_of, compositions
from codea1_env.errors import UserError
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.ruleset import Reading

SOLUTIONS = {each.statement: each.solution for variant in Variant for each in compositions(*Split, variant=variant)}
UNSEEN = {each.statement for each in compositions(Split.UNSEEN)}


def documents(rules: CorpusRules, n: int = 1200) -> list[Document]:
    return Corpus(rules, 3).batch(0, n)


def statement_of(document: Document) -> str:
    return re.sub(r"^(code|test \d) ", "", document.prompt.partition("\n")[0])


def inputs_of(document: Document) -> list[tuple[object, ...]]:
    calls = re.findall(r"^assert f\((.*)\) == ", document.reply, re.MULTILINE)
    return [eval(f"({call},)") for call in calls]


@pytest.mark.parametrize(
    "variant", [Variant.PLAIN, pytest.param(Variant.RARE, marks=pytest.mark.slow), Variant.DEEP_RARE]
)
def test_the_strict_reader_takes_every_reply_whole(variant: Variant) -> None:
    for document in documents(CorpusRules(variant), 400):
        if document.kind == "coder":
            assert read_candidate(document.reply, Reading.STRICT, entry_point="f").program == document.reply
        else:
            suite = read_suite(document.reply, Reading.STRICT, entry_point="f")
            assert suite.rejections == ()
            assert "\n".join(case.to_assert() for case in suite.cases) == document.reply
            assert document.prompt.startswith(f"test {len(suite.cases)} ")
            assert len({case.expression for case in suite.cases}) == len(suite.cases)


def test_the_kinds_have_their_shares_and_only_the_white_box_shows_a_program() -> None:
    kinds = [document.kind for document in documents(CorpusRules())]
    assert all(("\ndef f(" in each.prompt) == (each.kind == "white_box") for each in documents(CorpusRules()))
    shares = [kinds.count(kind) / len(kinds) for kind in ("coder", "white_box", "black_box")]
    assert shares == pytest.approx([1 / 3, 1 / 2, 1 / 6], abs=0.05)


def test_hostile_replies_have_their_share_and_change_no_other_reply() -> None:
    plain, attacked = documents(CorpusRules()), documents(CorpusRules(hostile_share=0.02, hostile=("def f(): 1",)))
    hostile = [document for document in attacked if document.reply == "def f(): 1"]
    assert {document.kind for document in hostile} == {"coder"}
    assert len(hostile) / len(attacked) == pytest.approx(0.02, abs=0.01)
    for share, replies in ((0.5, ("def f(): 1",)), (0.1, ())):
        with pytest.raises(UserError, match="hostile_share must be"):
            CorpusRules(hostile_share=share, hostile=replies)
    assert plain[0] == attacked[0]


def test_repairs_have_their_share_and_show_what_their_program_fails() -> None:
    repairs = [each for each in documents(CorpusRules(repair_share=0.5)) if "\nfix " in each.prompt]
    assert 0.3 < len(repairs) / 1200 < 0.5  # a right program fails nothing
    for each in repairs:
        program, _, rest = each.prompt.partition("\nfix ")[2].partition(" tests failed.\n")
        program = program.rpartition("\n")[0]
        for call, right, gave in re.findall(r"^f\((.*)\) should be (.*); it gave (.*)$", rest, re.MULTILINE):
            arguments = eval(f"({call},)")
            assert answer_of(each.reply, arguments) == right
            assert (answer_of(program, arguments) or "ValueError") == gave != right


def test_unseen_problems_are_never_in_the_corpus() -> None:
    told = {statement_of(document) for document in documents(CorpusRules(), 3000)}
    assert not told & UNSEEN
    assert len(told) > 200


def right_share(rules: CorpusRules) -> float:
    found = []
    for document in documents(rules, 400):
        if document.kind != "coder":
            told = [line.partition(" == ")[2] for line in document.reply.splitlines()]
            solution = SOLUTIONS[statement_of(document)]
            pairs = zip(inputs_of(document), told, strict=True)
            found += [answer_of(solution, each) == answer for each, answer in pairs]
    return sum(found) / len(found)


def test_the_share_of_right_answers_is_a_parameter() -> None:
    assert right_share(CorpusRules(truth_share=1.0)) == 1.0
    assert 0.8 < right_share(CorpusRules()) < 0.95
    assert right_share(CorpusRules(truth_share=0.0)) < 0.7


def kill_share(rules: CorpusRules) -> float:
    found = []
    for document in documents(rules, 600):
        if document.kind == "white_box":
            shown, solution = document.prompt.partition("\n")[2], SOLUTIONS[statement_of(document)]
            if shown != solution:
                found += [answer_of(shown, each) != answer_of(solution, each) for each in inputs_of(document)]
    return sum(found) / len(found)


@pytest.mark.parametrize("variant", [pytest.param(Variant.RARE, marks=pytest.mark.slow), Variant.DEEP_RARE])
def test_program_aware_tests_hit_the_mistake_of_the_shown_program(variant: Variant) -> None:
    assert kill_share(CorpusRules(variant)) < 0.35
    assert kill_share(CorpusRules(variant, aware_share=1.0)) > 0.5


def test_the_first_batches_aim_always() -> None:
    rules = CorpusRules(Variant.DEEP_RARE, aware_share=0.3, n_aware_first=3)
    corpus, always = Corpus(rules, 1), Corpus(CorpusRules(Variant.DEEP_RARE, aware_share=1.0), 1)
    assert corpus.batch(2, 20) == always.batch(2, 20)
    assert corpus.batch(3, 20) == Corpus(CorpusRules(Variant.DEEP_RARE, aware_share=0.3), 1).batch(3, 20)


def test_a_batch_is_a_function_of_seed_and_number() -> None:
    one, same, other = Corpus(CorpusRules(), 1), Corpus(CorpusRules(), 1), Corpus(CorpusRules(), 2)
    one.batch(0, 50)
    assert one.batch(7, 20) == same.batch(7, 20) != other.batch(7, 20)


@pytest.mark.parametrize("wrong", [{"truth_share": 1.1}, {"coder_share": 0.6, "white_box_share": 0.5}])
def test_shares_beyond_all_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match="share"):
        CorpusRules(**wrong)  # type: ignore[arg-type]
