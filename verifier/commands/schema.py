"""`python -m verifier schema`: the JSON Schema of task.json, made from the contract's dataclasses.

One source of truth: docs/task.schema.json is this command's output, and a test compares them.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import inspect
import json
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Final

from verifier.commands.exit_codes import ExitCode
from verifier.contract import Contract

JSON_TYPES: Final = {int: "integer", float: "number", str: "string", bool: "boolean"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No options."""


def _field_docs(kind: type[Any]) -> dict[str, str]:
    """The string below each field, which is where the contract documents it."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class is a class
    docs: dict[str, str] = {}
    for item, below in zip(body.body, body.body[1:], strict=False):
        match item, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(t))
            ):
                docs[name] = " ".join(t.split())
            case _:
                pass
    return docs


def _record(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A reference to a dataclass's schema, which is added to the definitions once."""
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        definitions[kind.__name__] = _object(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _object(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    hints, docs = typing.get_type_hints(kind), _field_docs(kind)
    properties: dict[str, Any] = {}
    required = []
    for item in dataclasses.fields(kind):
        schema = _schema(hints[item.name], definitions)
        if item.name in docs:
            schema = {**schema, "description": docs[item.name]}
        properties[item.name] = schema
        absent = dataclasses.MISSING
        if item.default is absent and item.default_factory is absent:
            required.append(item.name)
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return {}
    if hint in JSON_TYPES:
        return {"type": JSON_TYPES[hint]}
    if hint is type(None):
        return {"type": "null"}
    if origin in {typing.Union, types.UnionType}:
        return {"anyOf": [_schema(arg, definitions) for arg in args]}
    if origin is tuple and args[-1] is Ellipsis:
        return {"type": "array", "items": _schema(args[0], definitions)}
    if origin is tuple:
        items = [_schema(arg, definitions) for arg in args]
        return {"type": "array", "prefixItems": items, "minItems": len(args), "items": False}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(args[1], definitions)}
    if isinstance(hint, enum.EnumMeta):
        members: list[enum.Enum] = list(hint)
        return {"enum": [member.value for member in members]}
    return _record(hint, definitions)


def contract_schema() -> dict[str, Any]:
    """The schema as a document."""
    definitions: dict[str, Any] = {}
    root = _object(Contract, definitions)
    for name in ("inputs", "outputs"):
        root["properties"][name]["minItems"] = 1
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kernelhub task contract (task.json)",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def run(_: argparse.Namespace) -> ExitCode:
    """Print the schema."""
    sys.stdout.write(json.dumps(contract_schema(), indent=1) + "\n")
    return ExitCode.CLEAN
