"""Routes of the server, and routers whose routes stand among those of their parent."""

from collections.abc import Callable, Sequence
from typing import Any

from fastapi.params import Depends
from fastapi.routing import APIRoute, APIRouter
from starlette.routing import compile_path

from aftercall.model.json_fields import Json


class LazyRoute(APIRoute):
    """A route that knows its path from the start, and is built when it is first used.

    Reading the signatures of all endpoints, and making what checks their parameters and
    answers, was most of a server's start.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.path = path
        self.endpoint = endpoint
        self.name = options["name"] or endpoint.__name__
        self.methods = set(options["methods"])
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options = options

    def __getattr__(self, name: str) -> Any:
        """Python asks here for what the object does not have: all but the path, at first."""
        options = self.__dict__.pop("_options", None)
        if options is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        self.build(options)
        return getattr(self, name)

    def build(self, options: Json) -> None:
        super().__init__(self.path, self.endpoint, **options)


class ApiRoute(LazyRoute):
    """A route whose docstring is its summary. Fields that were not set stay out of its answer."""

    def build(self, options: Json) -> None:
        options["summary"] = " ".join((self.endpoint.__doc__ or "").split()).rstrip(".")
        options["response_model_exclude_unset"] = True
        super().build(options)
        self.description = ""


def add_section(
    parent: APIRouter,
    prefix: str = "",
    dependencies: Sequence[Depends] = (),
    route_class: type[APIRoute] = LazyRoute,
    **options: Any,
) -> APIRouter:
    """A router whose routes stand among those of its parent and keep its rules.

    FastAPI builds the routes of an included router again, at every level and at the first
    request: that took half of a server's start.
    """
    section = APIRouter(
        prefix=parent.prefix + prefix,
        dependencies=[*parent.dependencies, *dependencies],
        responses=parent.responses,
        include_in_schema=parent.include_in_schema,
        generate_unique_id_function=parent.generate_unique_id_function,
        route_class=route_class,
        **options,
    )
    section.routes = parent.routes
    return section
