"""Registries: what can be chosen by name (a policy, a model, a source …), and the traits of each.

Whoever adds one writes a file with one decorator and names its traits. A trait that nobody declared
is False, and what needs it is refused, so that a new thing is never let through by accident.

A registry lists the built-in ones with their modules. Those of neighbours and of other packages
come by entry points of its group (`yeoron.policies`: `name = "package.module"`).
`names` loads neither: a module is loaded when its traits or the thing itself are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from itertools import chain
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from embedding.kernel.errors import ConfigError


class Traits(Protocol):
    """A frozen dataclass of what a thing does; every default is the one that refuses."""

    def contradiction(self) -> str:
        """Why these traits cannot all be; empty where they can."""


DISTRIBUTION = "yeoron"
"""Whose entry points come with every installation: those of the neighbours of the core."""
INSTALL = '; pip install "yeoron[all]" brings more'


@dataclass(frozen=True)
class NoTraits:
    """Of things of a kind that differ in nothing that others need to know."""

    def contradiction(self) -> str:
        return ""


T = TypeVar("T")
S = TypeVar("S", bound=Traits)
D = TypeVar("D")


class Registry(Generic[T, S]):
    """Things of one kind by name. Raises ConfigError, one sentence, for all that is wrong.

    kind      what one is called in sentences: policy
    group     group of the entry points by which other packages add to it: yeoron.policies
    modules   module of each of the core, by name
    lab       a neighbour of the core adds to it; where that is not installed, a refusal says so
    """

    def __init__(
        self,
        kind: str,
        group: str,
        modules: Mapping[str, str] = MappingProxyType({}),
        *,
        lab: bool = False,
    ) -> None:
        self.kind, self.group = kind, group
        self._modules, self._lab = modules, lab
        self._known: dict[str, tuple[T, S]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def names(self) -> tuple[str, ...]:
        """Names that are accepted: those of Yeoron, then those of other packages, both sorted."""
        ours = self.built_in()
        return (*ours, *sorted({*self._entries, *self._known} - {*ours}))

    def built_in(self) -> tuple[str, ...]:
        """Names of those that come with Yeoron, sorted: of the core and of its neighbours."""
        return tuple(sorted({*self._modules, *self._neighbours}))

    def register(self, name: str, traits: S) -> Callable[[D], D]:
        """Decorator: the class or function below it is known under `name` and does `traits`."""
        wrong = traits.contradiction()
        if wrong:
            raise ConfigError(f"{self.kind} {name!r}: {wrong}; correct the traits it declares.")

        def keep(thing: D) -> D:
            home = other = thing.__module__
            if name in self._known:
                other = self._known[name][0].__module__
            elif name in self._modules:
                other = self._modules[name]
            elif name in self._entries:
                module = self._entries[name].module
                other = home if home.startswith(module.split(".")[0]) else module
            if other != home:
                raise ConfigError(
                    f"{self.kind} {name!r} is registered by {home} and by {other}: a name stands "
                    "for one; rename one of them."
                )
            self._known[name] = (thing, traits)  # type: ignore[assignment]
            return thing

        return keep

    def get(self, name: str) -> T:
        return self._load(name)[0]

    def traits(self, name: str) -> S:
        return self._load(name)[1]

    def first(self) -> T | None:
        """The first of all, for kinds of which one is enough; None where there is none."""
        return next((self.get(name) for name in self.names()), None)

    def needed(self, wanted: str, otherwise: str = "") -> T:
        """The first of all; ConfigError where none is installed.

        wanted  what asks for one, and what is missing: "split columns: nothing here learns on …"
        otherwise  what is accepted without one
        """
        thing = self.first()
        if thing is None:
            accepted = f", and {otherwise} is accepted" if otherwise else ""
            raise ConfigError(f'{wanted}; pip install "yeoron[all]" brings it{accepted}.')
        return thing

    def having(self, trait: str, wanted: object = True) -> tuple[str, ...]:
        return tuple(name for name in self.names() if getattr(self.traits(name), trait) == wanted)

    def check(self, name: str) -> str:
        """The name itself; ValueError, for a validator of settings, names the accepted ones."""
        if name not in self:
            raise ValueError(self._unknown(name))
        return name

    def _unknown(self, name: str) -> str:
        return f"{self.kind} {name!r}: one of {', '.join(self.names())} is accepted{self.more}"

    @property
    def more(self) -> str:
        """The end of a refusal: what to install where the laboratory is missing."""
        return INSTALL if self._lab and not self._neighbours else ""

    @cached_property
    def _neighbours(self) -> frozenset[str]:
        entries = self._entries.items()
        return frozenset(name for name, each in entries if _owner(each) == DISTRIBUTION)

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        """Entry points of other packages; none may take a name that is taken."""
        entries: dict[str, EntryPoint] = {}
        for entry in sorted(installed().select(group=self.group), key=lambda each: each.name):
            built_in = entry.name in self._modules
            if built_in and _owner(entry) == DISTRIBUTION:
                continue  # Of an installation of another version of this tree.
            if built_in or entry.name in entries:
                other = whose(entries[entry.name]) if entry.name in entries else "Yeoron itself"
                raise ConfigError(
                    f"{self.kind} {entry.name!r} is registered by {whose(entry)} and by {other}: "
                    "a name stands for one; uninstall the package or rename its entry point."
                )
            entries[entry.name] = entry
        return entries

    def _load(self, name: str) -> tuple[T, S]:
        if name not in self._known:
            entry = self._entries.get(name)
            if entry is None and name not in self._modules:
                raise ConfigError(f"{self._unknown(name)}.")
            before = dict(self._known)
            where = f"{self.kind} {name!r} of {whose(entry)}" if entry else self.kind
            try:
                import_module(entry.module if entry else self._modules[name])
            except Exception as error:
                self._known = before
                if entry is None:
                    raise
                raise ConfigError(
                    f"{where} cannot be loaded ({type(error).__name__}: {error}); repair or "
                    "uninstall that package."
                ) from error
            if name not in self._known:
                self._known = before
                raise ConfigError(
                    f"{where}: its module registers no {name!r}; the decorator and the entry "
                    "point have to name the same."
                )
        return self._known[name]


@cache
def installed() -> EntryPoints:
    """Entry points of every package: each file of them is read once for all registries."""
    points = entry_points()
    return EntryPoints(chain.from_iterable(points.select(group=name) for name in points.groups))


def whose(entry: EntryPoint) -> str:
    """The package of an entry point, for sentences."""
    return f"{_owner(entry) or 'a package'} (entry point {entry.value})"


def _owner(entry: EntryPoint) -> str:
    """Name of the distribution of an entry point, empty where it has none."""
    return entry.dist.name if entry.dist is not None else ""


@dataclass(frozen=True)
class Need:
    """A row of the compatibility table: who wants `feature` needs this trait, and why."""

    feature: str
    registry: Registry[Any, Any]
    trait: str
    because: str
    wanted: object = True

    def met(self, name: str) -> bool:
        return bool(getattr(self.registry.traits(name), self.trait) == self.wanted)

    @property
    def accepted(self) -> tuple[str, ...]:
        return self.registry.having(self.trait, self.wanted)

    @property
    def reason(self) -> str:
        """Why, and what is accepted: the second half of a refusal, without its full stop."""
        names = self.accepted
        verb = "is" if len(names) == 1 else "are"
        return f"{self.because}; {', '.join(names) or 'none'} {verb} accepted"

    def check(self, name: str, where: str = "", otherwise: str = "") -> None:
        """ConfigError where it does not.

        where      the feature as it was asked for, as in `2 shards`
        otherwise  what else is accepted, as in `, or 1 shard`
        """
        if not self.met(name):
            front = f"{self.registry.kind} {name} with {where or self.feature}"
            raise ConfigError(f"{front}: {self.reason}{otherwise}.")
