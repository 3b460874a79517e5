"""What an endpoint says of itself for the schema, beside its handler; ``permissions.api.schema`` writes it out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rest_framework import serializers

Shape = type[serializers.Serializer[Any]]
Handler = TypeVar("Handler", bound=Callable[..., Any])
Words = str | Callable[[Any], str]
ATTRIBUTE = "operation"


@dataclass(frozen=True, slots=True)
class Answer:
    """A success. ``shape``: a serializer of the body, or a JSON schema by hand; None for an empty one."""

    description: str
    shape: Shape | Mapping[str, Any] | None = None
    headers: Collection[str] = ()
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter of the query. ``choices`` makes it a closed list, whose breach is 400 ``invalid_choice``."""

    name: str
    description: str
    choices: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of an endpoint, as a decorator of its handler. Every handler of the API has one (tests/house).

    ``summary`` may be made from the view, where one class serves several paths. ``refusals``: its own codes by
    status, beside those that every endpoint has. ``item``: the shape of a list's entries, in pages.
    """

    summary: Words
    answers: Mapping[int, Answer] = field(default_factory=dict)
    description: Words = ""
    body: Shape | None = None
    item: Shape | None = None
    query: Sequence[Query] = ()
    refusals: Mapping[int, Iterable[str]] = field(default_factory=dict)

    def __call__(self, handler: Handler) -> Handler:
        setattr(handler, ATTRIBUTE, self)
        return handler


def operation_of(view: Any, method: str) -> Operation | None:
    """What the view says of a method; None where it says nothing."""
    return getattr(getattr(view, method.lower(), None), ATTRIBUTE, None)
