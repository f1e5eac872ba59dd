import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, cast

import pytest
from pydantic import Field

from app.ports import Tool
from app.tools import ToolContext, ToolDeclarationError, tool
from app.turn.agent import Effect


@dataclass(frozen=True)
class Address:
    street: str
    title: str = ""


def refusal_of(function: Callable[..., object], **options: str) -> str:
    with pytest.raises(ToolDeclarationError) as refused:
        cast("Any", tool)(**options)(function)
    return str(refused.value)


def schema_of(function: Callable[..., object]) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(tool(function).spec.parameters))


def test_a_function_becomes_a_tool_with_its_name_and_its_docstrings_first_paragraph() -> None:
    @tool(effect="reads")
    def stock(sku: str) -> int:
        """Count the units
        of a product.

        Not for the model.
        """  # noqa: D205
        return len(sku)

    declared: Tool = stock

    assert declared.spec.name == "stock"
    assert declared.spec.description == "Count the units of a product."
    assert declared.spec.effect is Effect.READS


def test_a_tool_that_says_nothing_of_its_effect_writes() -> None:
    @tool
    def bare() -> None: ...

    @tool()
    def called() -> None: ...

    assert bare.spec.effect is Effect.WRITES
    assert called.spec.effect is Effect.WRITES


def test_a_name_and_a_description_given_replace_the_functions_own() -> None:
    @tool(effect=Effect.IDEMPOTENT, name="orders-search", description="Find orders.")
    def search() -> None:
        """Something else."""

    assert (search.spec.name, search.spec.description) == ("orders-search", "Find orders.")
    assert search.spec.effect is Effect.IDEMPOTENT


def test_a_tool_without_a_docstring_has_an_empty_description() -> None:
    @tool
    def silent() -> None: ...

    assert silent.spec.description == ""


def test_a_tool_can_still_be_called_as_the_function_it_is() -> None:
    @tool
    def double(number: int) -> int:
        return 2 * number

    assert double(21) == 42


def test_the_schema_is_the_signature_with_defaults_bounds_and_descriptions() -> None:
    def search(
        sku: Annotated[str, Field(description="A product number.", min_length=1)],
        since: date | None = None,
        limit: int = Field(default=20, le=100),
    ) -> None: ...

    assert schema_of(search) == {
        "type": "object",
        "properties": {
            "sku": {"type": "string", "description": "A product number.", "minLength": 1},
            "since": {
                "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
                "default": None,
            },
            "limit": {"type": "integer", "default": 20, "maximum": 100},
        },
        "required": ["sku"],
        "additionalProperties": False,
    }


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    def now() -> None: ...

    assert schema_of(now) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_the_context_is_no_part_of_the_schema() -> None:
    def plain(sku: str, context: ToolContext) -> None: ...

    def wrapped(context: Annotated[ToolContext | None, "spare"], sku: str) -> None: ...

    assert list(schema_of(plain)["properties"]) == ["sku"]
    assert list(schema_of(wrapped)["properties"]) == ["sku"]


def test_parameters_may_bear_the_names_of_pydantics_own_attributes() -> None:
    def odd(schema: str, copy: int, model_config: int, _hidden: int, p0: int) -> None: ...

    names = ["schema", "copy", "model_config", "_hidden", "p0"]
    assert list(schema_of(odd)["properties"]) == names


def test_an_alias_names_an_argument_that_python_cannot_name() -> None:
    def odd(class_: Annotated[str, Field(alias="class")]) -> None: ...

    assert list(schema_of(odd)["properties"]) == ["class"]


def test_an_attribute_named_title_stays_in_the_schema() -> None:
    def send(address: Address) -> None: ...

    assert "title" in schema_of(send)["$defs"]["Address"]["properties"]


def test_a_default_that_is_a_set_is_written_in_one_order() -> None:
    def search(states: frozenset[str] = frozenset("zebra")) -> None: ...

    assert schema_of(search)["properties"]["states"]["default"] == ["a", "b", "e", "r", "z"]


def test_a_default_that_no_json_can_say_is_left_out_of_the_schema() -> None:
    def search(limit: int = cast("int", object())) -> None: ...

    assert schema_of(search)["properties"] == {"limit": {"type": "integer"}}


def test_a_bound_method_can_be_a_tool() -> None:
    class Shop:
        def stock(self, sku: str) -> str:
            return sku

    declared = tool(Shop().stock)

    assert list(json.loads(declared.spec.parameters)["properties"]) == ["sku"]


def test_arguments_that_no_json_object_can_name_are_refused() -> None:
    def positional(sku: str, /) -> None: ...
    def star(*skus: str) -> None: ...
    def double_star(**skus: str) -> None: ...

    assert "parameter 'sku', which is positional-only" in refusal_of(positional)
    assert "take one parameter annotated as a list" in refusal_of(star)
    assert "name each argument" in refusal_of(double_star)


def test_a_parameter_without_a_type_is_refused() -> None:
    def untyped(sku: str) -> None: ...

    del untyped.__annotations__["sku"]

    assert refusal_of(untyped) == ("tool 'untyped' has parameter 'sku' without a type; annotate it")


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    def unknown(sku: str) -> None: ...

    unknown.__annotations__["sku"] = "NoSuchType"

    assert "import its types at run time" in refusal_of(unknown)


def test_a_type_that_no_json_describes_is_refused() -> None:
    class Opaque: ...

    def opaque(thing: Opaque) -> None: ...
    def function(thing: Callable[[], None]) -> None: ...

    assert "'opaque' has a parameter whose type no JSON describes" in refusal_of(opaque)
    assert "'function' has a parameter whose type no JSON describes" in refusal_of(function)


def test_a_context_taken_twice_is_refused() -> None:
    def greedy(one: ToolContext, two: ToolContext) -> None: ...

    assert "takes the context twice, as ['one', 'two']" in refusal_of(greedy)


def test_a_function_that_yields_is_refused() -> None:
    def rows() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    assert "return one value, such as a list" in refusal_of(rows)
    assert "return one value, such as a list" in refusal_of(later)


def test_what_is_no_plain_function_is_refused() -> None:
    class Callable_:  # noqa: N801
        def __call__(self) -> None: ...

    assert "is not made of a plain function" in refusal_of(Callable_())
    assert "is not made of a plain function" in refusal_of(Callable_)


@pytest.mark.parametrize("name", ["orders.search", "über", "a" * 65, "two words", "line\n"])
def test_a_name_that_providers_do_not_take_is_refused(name: str) -> None:
    def search() -> None: ...

    assert "needs a name of 1 to 64 letters, digits, '_' and '-'" in refusal_of(search, name=name)


def test_a_lambda_needs_a_name() -> None:
    assert "give it name=..." in refusal_of(lambda: None)


def test_an_unknown_effect_is_refused_naming_the_known_ones() -> None:
    def search() -> None: ...

    assert refusal_of(search, effect="read") == (
        "tool 'search' has the unknown effect 'read'; use one of 'reads', 'idempotent', 'writes'"
    )


def test_a_tool_says_whether_its_error_gives_up_the_calls_behind_it() -> None:
    @tool(block_following=True)
    def reserve() -> None: ...
    @tool
    def note() -> None: ...

    assert (reserve.spec.block_following, note.spec.block_following) == (True, False)
    with pytest.raises(ToolDeclarationError, match="block_following is True or False, not 'yes'"):
        cast("Any", tool)(block_following="yes")(note.function)
