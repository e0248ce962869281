"""What every room's configuration is made of: frozen, typed, one docstring per field.

Each room keeps its own `config.py` with a subclass of `Config`; `embedding.settings` puts them
together and reads TOML and environment.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    PlainSerializer,
    SecretStr,
    SerializationInfo,
    ValidationError,
    model_validator,
)

from embedding.kernel.errors import ConfigError
from embedding.kernel.registry import installed, whose
from embedding.kernel.zones import known_zone

WITH_SECRETS = {"secrets": "with"}
"""Context of a dump that goes to the process it is for, or to where it came from."""


def _only_with(value: SecretStr, info: SerializationInfo) -> SecretStr | str:
    return value.get_secret_value() if info.context == WITH_SECRETS else value


Secret = Annotated[SecretStr, PlainSerializer(_only_with)]
"""A setting that is shown as asterisks, but for a dump with the context `WITH_SECRETS`."""


C = TypeVar("C", bound=BaseModel)
S = TypeVar("S", bound="Config")

ZoneName = Annotated[str, AfterValidator(known_zone)]
"""An IANA time zone that this machine knows."""


def _reached(location: str) -> str:
    if re.fullmatch(r"grpc(\+tcp|\+tls)?://.+:\d+", location) is None:
        raise ValueError("grpc://HOST:PORT, or grpc+tls://HOST:PORT with TLS, is accepted")
    return location


Location = Annotated[str, AfterValidator(_reached)]
"""Where a server's exchange is reached."""


class Config(BaseModel):
    """A frozen configuration section; an unknown key is refused by name, and so is an infinite
    or undefined number.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        allow_inf_nan=False,
    )

    REMOVED: ClassVar[Mapping[str, str]] = {}
    """Settings of the version before that are gone → what to write now. They are refused so."""

    ADDED: ClassVar[tuple[type[Config], ...] | None] = None
    """Classes of settings that other packages add (`extended`); None: none can."""

    ONLY: ClassVar[tuple[str, ...]] = ()
    """Of settings that are added to `sync`: the policies that read them."""

    INTERNAL: ClassVar[frozenset[str]] = frozenset()
    """Fields that programs set and people do not: no file and no variable may name them."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_removed(cls, data: Any) -> Any:
        given = data if isinstance(data, Mapping) else {}
        one_value = {old: f"leave it out: it is {now}" for old, now in cls.constants().items()}
        for old, instead in {**one_value, **cls.REMOVED}.items():
            if old in given:
                raise ValueError(f"{old!r} is no setting any more; {instead}")
        return data

    def idle(self) -> Mapping[str, str]:
        """Settings that have no effect beside the others as they are, and why."""
        return {}

    @classmethod
    def constants(cls) -> dict[str, Any]:
        """What was a setting and has one value now: class variables in small letters."""
        return {name: getattr(cls, name) for name in sorted(cls.__class_vars__) if name.islower()}

    def digest(self) -> str:
        """SHA-256 (hex) over the canonical JSON of this configuration, constants with it."""
        values = {**self.model_dump(mode="json"), **self.constants()}
        text = json.dumps(values, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def extended(section: str) -> Callable[[type[C]], type[C]]:
    """Decorator of a section to which other packages add settings that tune what they bring.

    Entry points of the group `yeoron.settings` name a module with `ADDED`: section → classes of
    `Config`, from which the section inherits as well. Whoever added one reads it by `part_of`.
    """

    def extend(core: type[C]) -> type[C]:
        added = _added().get(section, ())
        kinds: tuple[type[Any], ...] = (*reversed(added), core)
        removed = {name: now for kind in kinds for name, now in kind.REMOVED.items()}
        internal = frozenset(name for kind in kinds for name in kind.INTERNAL)
        about = {"__module__": core.__module__, "__doc__": core.__doc__, "ADDED": added}
        return type(core.__name__, kinds, {**about, "REMOVED": removed, "INTERNAL": internal})

    return extend


@cache
def _added() -> dict[str, tuple[type[Config], ...]]:
    """Classes of settings that other packages add, by section; ConfigError for a broken package."""
    classes: dict[str, tuple[type[Config], ...]] = {}
    for entry in installed().select(group="yeoron.settings"):
        try:
            named = entry.load().ADDED
        except Exception as error:
            if getattr(error, "name", "") == entry.module.partition(".")[0]:
                continue  # a package that is gone is no fault
            raise ConfigError(
                f"settings of {whose(entry)} cannot be loaded ({type(error).__name__}: {error}); "
                "repair or uninstall that package."
            ) from error
        for section, kinds in named.items():
            classes[section] = (*classes.get(section, ()), *kinds)
    return classes


def part_of(section: Config, kind: type[S]) -> S:
    """A section as the class of settings that a package added to it."""
    if not isinstance(section, kind):
        raise ConfigError(
            f"{kind.__name__} is not added to {type(section).__name__}; see `extended`."
        )
    return section


def explain(error: ValidationError, where: str, model: type[BaseModel]) -> str:
    """One sentence for a pydantic error: which field, what is wrong, what was given.

    model  what was validated: of its secrets it is not said what was given
    """
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        section = _kind_at(model, first["loc"][:-1])
        close = get_close_matches(str(first["loc"][-1]), getattr(section, "model_fields", {}), n=1)
        do = f"did you mean {close[0]!r}?" if close else "take it out."
        if getattr(section, "ADDED", None) == ():
            do += ' pip install "yeoron[all]" brings settings of the laboratory.'
        return f"{where}: unknown setting {field!r}{more}; {do}"
    sentence = _range(first["type"], model, first["loc"]) or first["msg"].removeprefix(
        "Value error, "
    )
    if not first["loc"]:
        return f"{where}: {sentence}{more}."
    given = first.get("input")
    # Of a whole section that is wrong the sentence names what matters.
    secret = SecretStr.__name__ in repr(_kind_at(model, first["loc"]))
    hidden = isinstance(given, dict) or secret
    got = "" if hidden else f", got {given!r}"
    return f"{where}: {field}: {sentence}{got}{more}."


def _range(kind: str, model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Which numbers a field takes that was given one too small or too large; else empty."""
    section = _kind_at(model, location[:-1])
    field = getattr(section, "model_fields", {}).get(str(location[-1])) if location else None
    if field is None or not kind.startswith(("greater_than", "less_than")):
        return ""
    words = {"gt": "above", "ge": "of at least", "lt": "below", "le": "of at most"}
    bounds = [
        f"{word} {getattr(bound, name):,}"
        for name, word in words.items()
        for bound in field.metadata
        if hasattr(bound, name)
    ]
    return f"a number {' and '.join(bounds)} is accepted"


def _kind_at(model: type[BaseModel], location: tuple[int | str, ...]) -> Any:
    kind: Any = model
    for part in location:
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            break
        field = kind.model_fields.get(str(part))
        kind = None if field is None else field.annotation
    return kind


def validate(model: type[C], data: dict[str, Any], where: str) -> C:
    """Validate `data` against `model`; raises ConfigError that names the field and `where`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(explain(error, where, model)) from error


def toml_of(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """TOML of flat sections; JSON's strings, numbers, booleans and lists are TOML's too."""
    lines: list[str] = []
    for name, values in sections.items():
        settings = (f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in values.items())
        lines += ["", f"[{name}]", *settings]
    return "\n".join(lines[1:]) + "\n"


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raises ConfigError with the file and line for a missing or broken one."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; a TOML file is expected.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}.") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: it is nested too deeply.") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from error


def field_meanings(source: str, name: str) -> dict[str, str]:
    """What the fields of a class in some source text mean: the string below each."""
    section = next(
        node
        for node in ast.parse(textwrap.dedent(source)).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    meanings = {}
    for field, below in pairwise(section.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=field_name)),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                meanings[field_name] = " ".join(meaning.split())
    return meanings
