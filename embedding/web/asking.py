"""Routes made of questions: what an address asks (`ask/questions.py`), and how its answer is shown.

docs/extending.md adds such a page: a question, a template, and `page_of(…)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

from fastapi import Query
from pydantic.fields import FieldInfo
from starlette.responses import Response

from embedding.ask.questions import Question
from embedding.web.site import AskedPage, PageRequest

ADDRESSED = {"window": "id", "word": "w", "first": "a", "second": "b"}
"""Fields that an address calls otherwise."""
PAGE_WAIT_S = 3.0
"""Seconds that a reader waits before the page says that it is being computed."""
ShowAnswer = Callable[[PageRequest, Question[Any]], Response]


def route_of(
    question: type[Question[Any]], name: str, show: ShowAnswer, path: str = "", **fixed: str
) -> Callable[..., Response]:
    """What answers at an address: its parameters are the fields of the question.

    path   the parts of the address in braces that are fields
    fixed  fields that the address does not say
    """
    fields = get_type_hints(question, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("page", keyword, annotation=AskedPage)]
    for field in inspect.signature(question).parameters.values():
        if field.name in fixed:
            continue
        kind = fields[field.name]
        if f"{{{field.name}" not in path:
            extras = (
                one for one in getattr(kind, "__metadata__", ()) if isinstance(one, FieldInfo)
            )
            about = next(extras, FieldInfo()).description
            alias = ADDRESSED.get(field.name, field.name)
            kind = Annotated[kind, Query(alias=alias, description=about)]
        parameters.append(field.replace(kind=keyword, annotation=kind))

    def answered(page: PageRequest, **given: Any) -> Response:
        return show(page, question(**given, **fixed))

    answered.__name__ = name
    answered.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return answered


def page_of(
    question: type[Question[Any]],
    template: str,
    show: Callable[[PageRequest, Any], dict[str, Any]] | None = None,
) -> Callable[..., Response]:
    """A page that shows an answer: the template has `asked`, the question, and `answer`.

    show  what else the template has
    """

    def shown(page: PageRequest, asked: Question[Any]) -> Response:
        answer = asked.answer(page.answers, PAGE_WAIT_S)
        more = {} if show is None else show(page, answer)
        return page.render(template, asked=asked, answer=answer, **more)

    return route_of(question, template.partition(".")[0], shown)
