"""Scenario files: every form that is in use, and every mistake with its line."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import NotFound, ScenarioRefused
from aftercall.tester.library import DEFAULT, find_scenarios, list_scenarios
from aftercall.tester.phrases import find_any
from aftercall.tester.scenario import json_schema
from aftercall.tester.scenario_file import load_scenarios, parse_scenarios

WHOLE = """
name: whole
description: Everything at once.
goal: Book a table.
test_type: edge
caller_context:
  background: Hungry.
  number: "+15550100"
  opening: A table, please.
  response_stages:
    - {name: when, when: what time, say: [At eight., Eight o'clock.]}
  anti_repetition: {again: ["Once more: {answer}"]}
  question_priority: [name]
  tone: calm
  verification: {name: Ann Lee, dob: {answer: "May 1st, 1990", asked_as: [born]}, required: [name]}
  markers: [blue hat]
turns:
  - {say: No, expect: {said: sure, not_said: never, asks: [dob], within_ms: 900,
     judged: It is polite.}}
  - dtmf: 012
  - {silence: 2}
  - {say: Wait!, after: {event: agent_starts, delay_ms: 300}}
  - {say: Stop!, after: {event: agent_says, words: goodbye}}
  - {hang_up: true}
success:
  - {said: booked|confirmed}
  - {probe: table}
  - {judged: The agent is polite.}
probes:
  - {name: table, http: "http://127.0.0.1:1/tables", contains: [Lee]}
limits: {max_turns: 12, max_duration_s: 60, max_silence_s: 5}
runs: 3
seed: 4
noise: {kind: babble, snr_db: 12}
line: {loss: 0.02, burst: 2}
"""


def test_a_whole_scenario_keeps_every_field() -> None:
    (scenario,) = parse_scenarios(WHOLE)
    (call,) = scenario.calls
    assert (scenario.runs, scenario.seed, scenario.noise.kind, scenario.line.burst) == (
        3,
        4,
        "babble",
        2,
    )
    assert call.caller_context.verification.answers["dob"].asked_as == ("born",)
    assert [turn.after.event for turn in call.turns if turn.after] == [
        "agent_starts",
        "agent_says",
    ]


def test_words_stay_words_and_keys_keep_their_zeros() -> None:
    (call,) = parse_scenarios(WHOLE)[0].calls
    assert (call.turns[0].say, call.turns[1].dtmf) == ("No", "012")


@pytest.mark.parametrize(
    ("field", "line", "said"),
    [
        ("name: whole", "name: two words", "name: string should match"),
        (
            "goal: Book a table.",
            "gaol: Book a table.",
            "gaol: is not a known field; did you mean 'goal'",
        ),
        ("test_type: edge", "test_type: odd", "test_type: input should be"),
        ("runs: 3", "runs: many", "runs: is not a whole number"),
        ("runs: 3", "runs: 0", "runs: input should be greater"),
        ("seed: 4", "seed: -1", "seed: input should be greater"),
        ("  - dtmf: 012", "  - dtmf: 1x", "turns[1].dtmf: string should match"),
        (
            "  - {silence: 2}",
            "  - {silence: long}",
            "turns[2].silence: is not a number",
        ),
        ("  - {silence: 2}", "  - {}", "turns[2]: does nothing"),
        (
            "  - {hang_up: true}",
            "  - {hang_up: perhaps}",
            "turns[5].hang_up: is not true or false",
        ),
        (
            "event: agent_starts, delay_ms: 300",
            "event: agent_sings",
            "turns[3].after.event: input should be",
        ),
        (
            "event: agent_says, words: goodbye",
            "event: agent_says",
            "turns[4].after.words: belong to agent_says",
        ),
        (
            "within_ms: 900",
            "within_ms: soon",
            "turns[0].expect.within_ms: is not a whole number",
        ),
        (
            "said: sure",
            "said: /(/",
            "turns[0].expect.said: has a pattern that cannot be read",
        ),
        (
            "  - {probe: table}",
            "  - {probe: chair}",
            "success[1].probe: there is no probe 'chair'",
        ),
        ("  - {probe: table}", "  - {name: empty}", "success[1]: needs exactly one of"),
        (
            "contains: [Lee]",
            "command: [ls]",
            "probes[0]: needs one of http, command, file, sqlite",
        ),
        ("max_turns: 12", "max_turns: 0", "limits.max_turns: input should be greater"),
        (
            "max_duration_s: 60",
            "max_duration_s: 99999",
            "limits.max_duration_s: input should be less",
        ),
        ("kind: babble", "kind: opera", "noise.kind: input should be"),
        ("loss: 0.02", "loss: 2", "line.loss: input should be less"),
        ("  tone: calm", "  tone: [a, b]", "caller_context.tone: is not text"),
        ("  opening: A table, please.", "  opening: {a: b}", "caller_context.opening"),
        (
            "say: [At eight., Eight o'clock.]",
            "say: []",
            "caller_context.response_stages[0].say: is empty",
        ),
    ],
)
def test_every_wrong_field_is_named_with_its_line(
    field: str, line: str, said: str
) -> None:
    assert field in WHOLE
    text = WHOLE.replace(field, line)
    with pytest.raises(ScenarioRefused) as refused:
        parse_scenarios(text, "book.yaml")
    expected = text[: text.index(line)].count("\n") + 1
    assert said in str(refused.value)
    assert str(refused.value).startswith("book.yaml:")
    assert refused.value.line == expected


def test_two_stages_with_the_same_trigger_are_refused() -> None:
    text = (
        "name: a\npatient_context:\n  response_stages:\n    - {when: Hello, say: Hi}\n    - "
        "when: [bye, hello]\n      say: Ho\n"
    )
    with pytest.raises(
        ScenarioRefused,
        match=(
            r"a\.yaml:5: patient_context\.response_stages\[1\]\.when: 'hello' already leads "
            r"to stage \[0\]"
        ),
    ):
        parse_scenarios(text, "a.yaml")


def test_no_scenario_can_run_for_ever() -> None:
    limits = parse_scenarios("name: a\nnotes: talk\n")[0].limits
    assert limits.max_turns
    assert limits.max_duration_s
    for line in ("limits: {max_turns: null}", "limits: {max_duration_s: null}"):
        with pytest.raises(ScenarioRefused):
            parse_scenarios(f"name: a\nnotes: talk\n{line}\n")


def test_a_scenario_in_which_nobody_speaks_is_refused() -> None:
    with pytest.raises(ScenarioRefused, match="nobody would say anything"):
        parse_scenarios("name: a\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", "is not valid YAML"),
        ("", "is empty"),
        ("- 3", "is not a mapping"),
        ("name: a\nname: b\n", "is there twice"),
        (
            "name: a\ngoal: x\npatient_context: {}\ncaller_context: {}\n",
            "are the same; give one",
        ),
        ("name: a\nturns: []\ncalls: []\n", "belongs into one of the calls"),
        ("a: &a [*a]", "is nested or repeated too often"),
    ],
)
def test_files_that_are_no_scenarios_are_refused(text: str, said: str) -> None:
    with pytest.raises(ScenarioRefused, match=said.replace("[", r"\[")):
        parse_scenarios(text)


def test_the_older_list_of_scenarios_is_read() -> None:
    text = """
scenarios:
  - name: refill
    description: A refill.
    goal: Get a refill.
    behavior: Be patient.
    success: [{said: refill}]
  - name: hours
    patient_context:
      goal: Ask for the hours.
      response_stages:
        greeting: When are you open?
        confirm: Yes, thanks.
      anti_repetition: ["Never repeat your name."]
      question_priority: "Answer the question first."
      verification: {full_name: Ann Lee, date_of_birth: "May 1st, 1990"}
    success: [{said: open}]
"""
    refill, hours = parse_scenarios(text)
    context = hours.calls[0].caller_context
    assert refill.notes == ("Be patient.",)
    assert (hours.goal, [stage.name for stage in context.response_stages]) == (
        "Ask for the hours.",
        ["greeting", "confirm"],
    )
    assert set(context.verification.answers) == {"name", "dob"}
    assert context.anti_repetition.rules == ("Never repeat your name.",)


def test_stages_in_prose_become_stages_where_they_name_a_trigger() -> None:
    text = """
- name: prose
  patient_context:
    response_stages:
      - When the agent asks for the reason, say "It is a check-up."
      - Stay calm.
"""
    (scenario,) = parse_scenarios(text)
    (stage,) = scenario.calls[0].caller_context.response_stages
    assert find_any(stage.when, "And what's your reason for coming?")
    assert not find_any(stage.when, "What's your name?")
    assert (stage.say, scenario.notes) == (("It is a check-up.",), ("Stay calm.",))


@pytest.mark.parametrize(
    ("prose", "question"),
    [
        ("how it can help", "What can I do for you?"),
        ("for your date of birth", "And when were you born?"),
        ("which insurance you have", "Which insurance do you have?"),
    ],
)
def test_a_stage_in_prose_is_reached_by_the_usual_words(
    prose: str, question: str
) -> None:
    text = f"""
- name: prose
  caller_context:
    response_stages: ['When the agent asks {prose}, say "So and so."']
"""
    (scenario,) = parse_scenarios(text)
    (stage,) = scenario.calls[0].caller_context.response_stages
    assert find_any(stage.when, question)


def test_older_files_describe_the_caller_beside_the_goal_or_in_prose() -> None:
    text = """
scenarios:
  - name: old
    goal: Book a visit.
    background: A patient with a cold.
    patient_context: {behavior: Be brief., opening: Hello.}
    success: [{said: booked}]
"""
    (scenario,) = parse_scenarios(text)
    assert scenario.calls[0].caller_context.background == "A patient with a cold."
    assert scenario.notes == ("Be brief.",)


def test_the_library_has_twenty_scenarios_and_the_default() -> None:
    names = [scenario.name for scenario in list_scenarios()]
    assert len(names) >= 20
    assert [scenario.name for scenario in find_scenarios([]).scenarios] == [DEFAULT]
    edges = {
        "edge_barge_in",
        "edge_misheard_name",
        "edge_asked_twice",
        "edge_topic_detour",
        "edge_voicemail",
        "edge_silence",
    }
    assert edges | {
        "edge_dtmf_menu",
        "memory_across_calls",
        "no_leak_across_callers",
        "edge_prompt_injection",
    } <= set(names)


def test_your_own_scenario_hides_the_librarys(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        f"name: {DEFAULT}\ndescription: mine\nnotes: talk\n"
    )
    assert find_scenarios([DEFAULT], tmp_path).scenarios[0].description == "mine"
    assert len(find_scenarios(["all"], tmp_path).scenarios) == len(list_scenarios())


@pytest.mark.parametrize(
    "more",
    [
        "",
        "caller_context: {opening: Hi.}\n",
        "turns: [{say: Hi.}]\n",
        "turns: [{say: Hi., expect: {}}]\n",
    ],
)
def test_a_goal_that_nothing_checks_is_refused(more: str) -> None:
    with pytest.raises(
        ScenarioRefused, match=r"a\.yaml:2: goal: nothing checks it; add `success`"
    ):
        parse_scenarios(f"name: a\ngoal: Book a table.\n{more}", "a.yaml")


@pytest.mark.parametrize(
    "check",
    [
        "success: [{said: booked}]",
        "turns: [{say: Hi., expect: {said: booked}}]",
        "outcome: busy",
    ],
)
def test_a_goal_is_checked_by_success_expectations_or_outcome(check: str) -> None:
    assert parse_scenarios(f"name: a\ngoal: Book a table.\n{check}\n")[0].goal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "limits: {max_turn: 3}",
            "limits.max_turn: is not a known field; did you mean 'max_turns'?",
        ),
        (
            "turns: [{sya: Hi.}]",
            "turns[0].sya: is not a known field; did you mean 'say'?",
        ),
        (
            "patient_context: {openning: Hi.}",
            "patient_context.openning: is not a known field; did you mean 'opening'?",
        ),
        (
            "turns: [{say: Hi., expect: {sayd: x}}]",
            "turns[0].expect.sayd: is not a known field; did you mean 'said'?",
        ),
        ("turn: []", "turn: is not a known field; did you mean 'turns'?"),
        ("zzz: 1", "zzz: is not a known field"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(text: str, said: str) -> None:
    with pytest.raises(ScenarioRefused) as refused:
        parse_scenarios(f"name: a\nnotes: talk\n{text}\n", "a.yaml")
    assert str(refused.value) == f"a.yaml:3: {said}"


def test_a_broken_file_in_a_folder_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text("name: good\nnotes: talk\n")
    (tmp_path / "broken.yaml").write_text("name: broken\nnotes: talk\nlimit: {}\n")
    (tmp_path / f"{DEFAULT}.yaml").write_text("name: [")
    found = find_scenarios(["all"], tmp_path)
    assert len(found.scenarios) == len(list_scenarios()) + 1
    assert [refusal.line for refusal in found.refused] == [1, 3]
    assert [
        scenario.name for scenario in find_scenarios(["good"], tmp_path).scenarios
    ] == ["good"]
    assert [
        scenario.name for scenario in find_scenarios([f"{tmp_path}/"]).scenarios
    ] == ["good"]
    with pytest.raises(ScenarioRefused, match="not valid YAML"):
        find_scenarios([DEFAULT], tmp_path)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFound, match="did you mean 'prescription_refill'"):
        find_scenarios(["perscription_refill"])


def test_a_file_that_is_missing_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioRefused, match="there is no such file"):
        load_scenarios(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioRefused, match="not valid UTF-8"):
        load_scenarios(tmp_path / "bad.yaml")


def test_the_schema_describes_every_field() -> None:
    schema = json_schema()
    assert json.loads(json.dumps(schema))["required"] == ["name"]
    nouns = [schema, *schema["$defs"].values()]
    fields = [
        (name, field)
        for noun in nouns
        for name, field in noun.get("properties", {}).items()
    ]
    bare = [
        name
        for name, field in fields
        if "description" not in field and "$ref" not in field
    ]
    assert set(bare) <= {"turns"}


KEYS = (
    "name",
    "goal",
    "turns",
    "say",
    "calls",
    "success",
    "said",
    "patient_context",
    "response_stages",
    "verification",
    "limits",
)


def is_scenario_or_refused(text: str) -> bool:
    try:
        parse_scenarios(text)
    except ScenarioRefused as refused:
        return refused.line >= 1
    return True


@given(st.text(max_size=200))
def test_any_text_is_a_scenario_or_refused(text: str) -> None:
    assert is_scenario_or_refused(text)


def nest(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(KEYS), inner, max_size=4
    )


@given(st.recursive(st.none() | st.text(max_size=8), nest, max_leaves=12))
def test_any_shape_is_a_scenario_or_refused(data: object) -> None:
    assert is_scenario_or_refused(json.dumps(data))
