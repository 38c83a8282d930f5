"""Mid-call tools as engines see them."""

from aftercall.bridge.tools import list_tools


def test_the_forms_are_plain_enough_for_every_engine() -> None:
    forms = {tool.name: tool.parameters for tool in list_tools()}
    assert set(forms) == {"search_memory", "take_request", "end_call"}
    assert forms["take_request"]["required"] == ["title"]
    assert forms["take_request"]["properties"]["due"] == {
        "type": "string",
        "format": "date",
        "default": None,
        "description": "by which day",
    }
    for form in forms.values():
        assert "$defs" not in form
        assert all(
            "anyOf" not in field and "title" not in field
            for field in form["properties"].values()
        )
