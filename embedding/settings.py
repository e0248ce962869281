"""All settings in one frozen object: TOML file, environment, defaults.

Order, the first wins: environment (`YEORON_SERVER__PORT=8815`), the TOML file named by
`--settings` or `$YEORON_SETTINGS` (else `yeoron.toml` if there is one), the defaults beside each
room's code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from embedding.crawl.config import CrawlConfig, DiscoverConfig
from embedding.database.config import DatabaseConfig
from embedding.evaluation.config import EvaluationConfig
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import Config, explain, read_toml
from embedding.kernel.errors import ConfigError
from embedding.kernel.ports import REACHED, bracketed, is_loopback
from embedding.kernel.tracing import DEFAULT_SAMPLE, ENDPOINT_VARIABLE, SAMPLE_VARIABLE
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.policies.traits import POLICIES
from embedding.show.notifying import NotifyConfig
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.trends.config import TrendsConfig
from embedding.web.config import PageConfig, WebConfig
from embedding.worker.config import NodeConfig
from embedding.worker.spec import check_replay

PREFIX = "YEORON_"
SETTINGS_VARIABLE = "YEORON_SETTINGS"
OTHER_VARIABLES = frozenset({SETTINGS_VARIABLE, "YEORON_DATA", "YEORON_PLATFORM"})
"""Variables with our prefix that are no settings: where settings and corpora lie, and the mark of
the platform's processes."""


DatabaseName = Literal["airflow", "mlflow", "frontier"]
"""What has a database of its own."""


class _InHome:
    """A file or folder of the home."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, paths: Any, kind: Any) -> Path:
        home: Path = paths.home
        return home / self._name


class _Layout:
    """What lies where in a home."""

    snapshots = _InHome("snapshots")
    trends = _InHome("trends")
    evidence = _InHome("evidence")
    checkpoints = _InHome("checkpoints")
    frontier = _InHome("frontier")
    rejected = _InHome("rejected-sources.json")  # Addresses that a person did not want.
    logs = _InHome("logs")
    mlflow = _InHome("mlflow")
    airflow = _InHome("airflow")
    # What the platform's processes show each other: certificates, keys, tokens.
    secrets = _InHome("secrets")
    nodes = _InHome("secrets/nodes")  # What each node of the pool must know, while it runs.
    node_token = _InHome("secrets/node-token")
    operator_token = _InHome("secrets/operator-token")  # Of those who change the training.
    # Certificate of the control host's authority, where there are several hosts.
    authority = _InHome("secrets/authority.pem")
    # What this home is to a control host, when it has joined one.
    joined_host = _InHome("secrets/host.json")


class PathsConfig(_Layout, Config):
    """Where the platform keeps its state."""

    home: Path = Path("var")
    """Folder of all state: frontier, snapshots, checkpoints, trends, logs, databases."""

    sources: Path = Path("infra/sources.example.toml")
    """The sources to read."""

    @property
    def dask_certificate(self) -> tuple[Path, Path]:
        """Certificate and key of everyone in the Dask cluster; the certificate is its authority."""
        return self.secrets / "dask-cert.pem", self.secrets / "dask-key.pem"

    @property
    def server_certificate(self) -> tuple[Path, Path]:
        return self.secrets / "server-cert.pem", self.secrets / "server-key.pem"

    @property
    def dask_authority(self) -> Path:
        """By which those in the Dask cluster know each other."""
        return self.authority if self.authority.is_file() else self.dask_certificate[0]


class PortsConfig(Config):
    """Loopback ports of the services that are not Yeoron's own (those are beside their owner)."""

    airflow: int = Field(default=8080, ge=1, le=65535)
    """Airflow's API server and pages."""

    mlflow: int = Field(default=5000, ge=1, le=65535)
    """MLflow's tracking server."""

    dask: int = Field(default=8786, ge=1, le=65535)
    """Dask's scheduler."""

    dask_dashboard: int = Field(default=8787, ge=1, le=65535)
    """Dask's dashboard."""

    simweb: int = Field(default=8899, ge=1, le=65535)
    """The simulated web of the demo."""


class HostsConfig(Config):
    """Several hosts: this one as the control host, or as one that joins it."""

    address: str = Field(default="", pattern=r"^(|[0-9A-Za-z.:-]+)$")
    """Address of this host at which others reach it; nodes of other hosts may join then
    (`yeoron invite`). Empty: everything stays on this host."""

    port: int = Field(default=8790, ge=1, le=65535)
    """Port at which hosts that join are answered."""

    server: str = Field(default="", pattern=r"^(|[0-9A-Za-z.:-]+)$")
    """Address of another host that runs the parameter server with its shards
    (`yeoron invite --role server`), with the settings `server`, `sync` and `model` of this one;
    needs `address`. Empty: this host runs it."""

    workers: int | None = Field(default=None, ge=0, le=1000)
    """Dask workers, so nodes at most, on this host; None: cluster.nodes."""

    @model_validator(mode="after")
    def _reachable(self) -> HostsConfig:
        for name, given in (("address", self.address), ("server", self.server)):
            if given in {"0.0.0.0", "::"} or is_loopback(given):  # noqa: S104
                raise ValueError(
                    f"{name} {given}: other hosts cannot reach that; one address of the host is "
                    "accepted, as in 192.0.2.7"
                )
        if self.server and not self.address:
            raise ValueError(
                f"server {self.server}: hosts join at address, which is empty; the address of this "
                "host is accepted there"
            )
        if self.server and self.server == self.address:
            raise ValueError(f"server {self.server}: it is this host (address); leave it out")
        return self


class LogConfig(Config):
    """Log lines of every process."""

    format: Literal["text", "json"] = "text"
    """`json`: one object a line, with time, level, process, node, window, message and fields;
    then `yeoron up` brings the lines of Airflow, MLflow and Dask into that form, too."""


class TraceConfig(Config):
    """Where traces of documents (OpenTelemetry) and the lineage of tasks (OpenLineage) are sent.

    The extras `otel` and `lineage` must be installed."""

    endpoint: str | None = None
    """Address that takes spans by OTLP over HTTP (`http://127.0.0.1:4318/v1/traces`); None traces
    nothing."""

    sample: float = Field(default=DEFAULT_SAMPLE, ge=0, le=1)
    """Share of the documents that are traced."""

    lineage: str | None = Field(default=None, pattern=r"^https?://[^/]+")
    """Address of a collector that takes OpenLineage events over HTTP (`http://127.0.0.1:5000`):
    what each task of Airflow read and wrote. None sends nothing."""

    @property
    def environment(self) -> dict[str, str]:
        if self.endpoint is None:
            return {}
        return {ENDPOINT_VARIABLE: self.endpoint, SAMPLE_VARIABLE: str(self.sample)}

    @property
    def airflow(self) -> dict[str, str]:
        """Variables of Airflow's OpenLineage provider. Raises ConfigError where it is missing."""
        if self.lineage is None:
            return {}
        if find_spec("openlineage") is None:
            raise ConfigError(
                "trace.lineage: OpenLineage is not installed; `pip install 'yeoron[lineage]'`, or "
                "leave the setting out."
            )
        # A task waits for these: a collector that is away is not asked for long.
        patience = {"timeout": 3, "retry": {"total": 1, "connect": 1, "backoff_factor": 0.1}}
        transport = {"type": "http", "url": self.lineage, **patience}
        return {
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "yeoron",
        }


class RetentionConfig(Config):
    """For how many days each store keeps what it has (`yeoron retain`); 0: for ever."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "mlflow_days": "write snapshots_days: it holds for MLflow's runs of snapshots too",
    }

    evidence_days: float = Field(default=365, ge=0)
    """Addresses of documents by word, by when the document was published."""

    frontier_days: float = Field(default=365, ge=0)
    """Addresses that are done or given up, by when they were. What a listing still shows after
    that is read again: choose more days than listings go back."""

    snapshots_days: float = Field(default=0, ge=0)
    """Snapshots, by when they were written, and MLflow's runs of them with their models, by when
    they ended. Those that an alias of MLflow names, and the newest snapshot, are kept."""

    # Constants: a file that sets one is refused.
    # Trend reports, by when they were written; they can be made again from their snapshots.
    reports_days: ClassVar = 365
    # States of the server that rollbacks put aside (`checkpoints-before-*`).
    copies_days: ClassVar = 90
    logs_days: ClassVar = 90  # Log files that nobody has written to since.


class ClusterConfig(Config):
    """The Dask cluster that nodes run on."""

    nodes: int = Field(default=2, ge=1, le=10_000)
    """Nodes of the pool; each takes one Dask worker."""

    pool: str = Field(default="yeoron", pattern=r"^[a-z][a-z0-9-]{0,40}$")
    """Name of the pool; part of the keys under which its nodes run."""


FIRST_SETTINGS = (
    "paths.home",
    "paths.sources",
    "crawl.user_agent",
    "server.window",
    "server.timezone",
    "server.min_authors",
    "cluster.nodes",
    "text.tokenizer",
    "retention.evidence_days",
    "retention.frontier_days",
    "notify.email_to",
    "notify.smtp_host",
    "ports.airflow",
    "ports.mlflow",
)
"""What most installations set; the reference page begins with them, the rest is for experts."""


class Settings(BaseSettings):
    """Every option of Yeoron, each exactly once."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        nested_model_default_partial_update=True,
    )
    toml: ClassVar[Path | None] = None

    paths: PathsConfig = PathsConfig()
    ports: PortsConfig = PortsConfig()
    hosts: HostsConfig = HostsConfig()
    database: DatabaseConfig = DatabaseConfig()
    log: LogConfig = LogConfig()
    trace: TraceConfig = TraceConfig()
    retention: RetentionConfig = RetentionConfig()
    cluster: ClusterConfig = ClusterConfig()
    crawl: CrawlConfig = CrawlConfig()
    discover: DiscoverConfig = DiscoverConfig()
    text: TextConfig = TextConfig()
    stream: StreamConfig = StreamConfig()
    model: ModelConfig = ModelConfig()
    node: NodeConfig = NodeConfig()
    exchange: ExchangeConfig = ExchangeConfig()
    server: ServerConfig = ServerConfig(port=8815, http_port=8816)
    sync: SyncConfig = SyncConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    trends: TrendsConfig = TrendsConfig()
    notify: NotifyConfig = NotifyConfig()
    web: PageConfig = PageConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        check_replay(self.model, self.stream, self.node)
        POLICIES.traits(self.sync.policy).check(self.model, self.exchange)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Explicit values, then environment, then the TOML file; no .env, no secret folder."""
        del dotenv_settings, file_secret_settings
        sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings)
        if cls.toml is not None:
            sources += (TomlConfigSettingsSource(settings_cls, toml_file=cls.toml),)
        return sources

    @property
    def server_location(self) -> str:
        """Where nodes reach the parameter server's Flight service."""
        if self.exchange.location is not None:
            return self.exchange.location
        host, port = self.server.host, self.server.port
        scheme = "grpc" if self.server.tls_cert is None else "grpc+tls"
        if self._own_certificates:
            scheme, host = "grpc+tls", self.hosts.server or self.hosts.address or host
        host = REACHED.get(host, host)
        return f"{scheme}://{bracketed(host)}:{port}"

    @property
    def _own_certificates(self) -> bool:
        """Whether the server shows a certificate of the platform and asks for one.

        `yeoron up` makes them, for one host as for several; a server that was given others, or
        that is started alone, does without.
        """
        if not is_loopback(self.server.host) or self.server.tls_cert is not None:
            return False
        return bool(self.hosts.address) or self.paths.server_certificate[0].is_file()

    def certified(self, server: ServerConfig) -> ServerConfig:
        """The platform's server with the platform's certificates; another one as it is."""
        ours = (server.host, server.port) == (self.server.host, self.server.port)
        if not (ours and self._own_certificates and server.tls_cert is None):
            return server
        cert, key = (path.resolve() for path in self.paths.server_certificate)
        authority = self.paths.authority.resolve()
        known = {"tls_cert": cert, "tls_key": key, "tls_ca": authority, "tls_client_ca": authority}
        return server.model_copy(update={"host": self.hosts.address or server.host, **known})

    def line(self, location: str | None = None, *, operator: bool = False) -> ExchangeConfig:
        """How a server is reached, as a node or as an operator; None: this home's own server.

        The home's token is shown to the platform's own servers, unless another is set.
        """
        chosen = self.exchange
        token = self.paths.operator_token if operator else self.paths.node_token
        host = urlsplit(location or self.server_location).hostname or ""
        servers = {self.hosts.address, self.hosts.server} - {""}
        ours = host in servers or (location or self.server_location) == self.server_location
        if self._own_certificates and ours and chosen.tls_ca is None:
            # The host of the server alone has none of the cluster.
            pair = self.paths.dask_certificate
            pair = pair if pair[0].is_file() else self.paths.server_certificate
            cert, key = (path.resolve() for path in pair)
            known = {"tls_ca": self.paths.authority.resolve(), "tls_cert": cert, "tls_key": key}
            chosen = chosen.model_copy(update=known)
        if operator and chosen.operator_token_file is not None:
            return chosen.model_copy(update={"token_file": chosen.operator_token_file})
        here = is_loopback(host) or host in servers
        if chosen.token_file is not None or not here or not token.is_file():
            return chosen
        return chosen.model_copy(update={"token_file": token.resolve()})

    @property
    def state_folder(self) -> Path:
        """Where the server keeps its checkpoints."""
        return self.server.state_dir or self.paths.checkpoints

    @property
    def snapshot_store(self) -> str:
        """Where the server publishes snapshots and all others read them."""
        return self.server.snapshots or str(self.paths.snapshots)

    def sqlite_file(self, name: DatabaseName) -> Path:
        """The file with its tables where no other database is set."""
        files = {
            "airflow": self.paths.airflow / "airflow.db",
            "mlflow": self.paths.mlflow / "mlflow.db",
            "frontier": self.paths.frontier / f"{self.cluster.pool}.db",
        }
        return files[name].resolve()

    def database_address(self, name: DatabaseName) -> str:
        """SQLAlchemy address of its tables: on PostgreSQL where that is set, else in the home.

        It names a file of passwords, and holds none itself unless `crawl.frontier` does.
        """
        own = self.crawl.frontier.get_secret_value()
        if name == "frontier" and own != CrawlConfig().frontier.get_secret_value():
            return self.database.completed(own) if own.startswith("postgres") else own
        # One frontier a pool, as each pool has a file of its own.
        schema = f"frontier_{self.cluster.pool.replace('-', '_')}" if name == "frontier" else None
        return self.database.of(name, schema) or f"sqlite:///{self.sqlite_file(name)}"

    def database_setting(self, name: DatabaseName) -> str:
        """The setting that says where its tables are, for a message."""
        default = CrawlConfig().frontier
        if name == "frontier":
            return "database.url" if self.crawl.frontier == default else "crawl.frontier"
        own = getattr(self.database, name).get_secret_value()
        return f"database.{name}" if own else "database.url"

    @property
    def server_status_url(self) -> str:
        return f"http://{self.server.http_host}:{self.server.http_port}/status"

    @property
    def mlflow_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.mlflow}"

    @property
    def own_mlflow(self) -> bool:
        """Whether runs go to the platform's own MLflow (`evaluation.tracking_uri`)."""
        chosen = self.evaluation.tracking_uri
        return not chosen or chosen.get_secret_value().rstrip("/") == self.mlflow_url

    @property
    def tracking_address(self) -> str:
        """Where MLflow is, for programs: `evaluation.tracking_uri`, else the platform's own with
        its login, where `yeoron up` has made one.
        """
        chosen = self.evaluation.tracking_uri
        if chosen and not self.own_mlflow:
            return chosen.get_secret_value()
        try:
            user, password = platform_login(self.paths.airflow)
        except ConfigError:
            return self.mlflow_url  # no platform has run here
        login = f"{quote(user, safe='')}:{quote(password, safe='')}@"
        return self.mlflow_url.replace("://", f"://{login}", 1)

    @property
    def airflow_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.airflow}"

    @property
    def dask_url(self) -> str:
        return f"tls://{bracketed(self.hosts.address or '127.0.0.1')}:{self.ports.dask}"

    @property
    def dask_dashboard_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.dask_dashboard}/status"

    @property
    def trends_url(self) -> str:
        return f"{self.airflow_url}/yeoron/"

    @property
    def page(self) -> WebConfig:
        """The trends page's settings with the store, the reports and the server of this home."""
        return WebConfig(
            **dict(self.web),
            snapshots=self.snapshot_store,
            reports=self.paths.trends,
            evidence=self.paths.evidence,
            status_url=self.server_status_url,
            token_file=self.paths.home / "web-token",
            team=self.paths.home / "team.json",
            headlines_file=self.paths.home / "headlines.db",
            tokens=self.paths.home / "web-tokens.sqlite",
            accounts=self.paths.home / "accounts.sqlite",
            source_weights=self.node.source_weights,
            chromium=self.crawl.browser,
            trends=self.trends,
        )

    def digest(self) -> str:
        return self.model.digest()


@dataclass(frozen=True)
class GivenSettings:
    """What environment and file say, without defaults, by section; the environment wins.

    values       section → name → value as it was given; all were checked
    environment  the part of it that the environment says
    file         the file of the rest, None: there is none
    """

    values: Mapping[str, Mapping[str, Any]] = field(repr=False)
    environment: Mapping[str, Mapping[str, Any]] = field(repr=False)
    file: Path | None

    def origin(self, section: str, name: str) -> str:
        """Where a setting was given, for a message."""
        if name in self.environment.get(section, {}):
            return f"environment {PREFIX}{section.upper()}__{name.upper()}"
        return f"{self.file}: [{section}] {name}"


def platform_login(airflow: Path) -> tuple[str, str]:
    """User and password of the Airflow in a folder, which open MLflow and the trends page too.

    Raises ConfigError when none was made there.
    """
    path = airflow / "passwords.json"
    try:
        user, password = next(iter(json.loads(path.read_text(encoding="utf-8")).items()))
    except (OSError, ValueError, AttributeError, StopIteration) as error:
        raise ConfigError(
            f"{path}: no Airflow login here; start the platform once to make one."
        ) from error
    return user, str(password)


def load_settings(path: Path | None = None) -> Settings:
    """Read settings; raises ConfigError with one sentence for a bad file, key or value."""
    file = _settings_file(path)
    _check_variables()

    class Located(Settings):
        toml: ClassVar[Path | None] = file

    try:
        settings = Located()
    except ValidationError as error:
        where = f"settings ({file} and environment YEORON_*)" if file else "environment YEORON_*"
        raise ConfigError(explain(error, where, Settings)) from error
    except SettingsError as error:
        # A whole section given as one variable that is not JSON.
        raise ConfigError(f"environment YEORON_*: {error}; JSON is expected.") from error
    _refuse_internal(Settings, _given(file).values)
    return settings


def given_settings(path: Path | None = None) -> GivenSettings:
    """What was set and where; raises ConfigError for what `load_settings` refuses."""
    load_settings(path)
    return _given(_settings_file(path))


def _refuse_internal(model: type[BaseModel], given: Mapping[str, Any], path: str = "") -> None:
    """Raises ConfigError for a field that programs set and people do not."""
    for name, value in given.items():
        if issubclass(model, Config) and name in model.INTERNAL:
            raise ConfigError(
                f"settings: {path}{name} is no setting; leave it out: Yeoron chooses it itself."
            )
        kind = model.model_fields[name].annotation
        if isinstance(value, Mapping) and isinstance(kind, type) and issubclass(kind, BaseModel):
            _refuse_internal(kind, value, f"{path}{name}.")


def _given(file: Path | None) -> GivenSettings:
    environment: dict[str, dict[str, Any]] = EnvSettingsSource(Settings)()
    values = {} if file is None else read_toml(file)
    merged = {
        name: {**values.get(name, {}), **environment.get(name, {})}
        for name in {**values, **environment}
    }
    return GivenSettings(merged, environment, file)


def _settings_file(path: Path | None) -> Path | None:
    # An empty variable names nothing, as in a shell.
    given = os.environ.get(SETTINGS_VARIABLE)
    named = path or (Path(given) if given else None)
    file = named or (Path("yeoron.toml") if Path("yeoron.toml").is_file() else None)
    if file is not None:
        read_toml(file)
    return file


def _check_variables() -> None:
    """Raises ConfigError for a variable that looks like a setting and is none."""
    for name in os.environ:
        if name.upper().startswith(PREFIX) and name.upper() not in OTHER_VARIABLES:
            section = name.upper().removeprefix(PREFIX).partition("__")[0].lower()
            if section not in Settings.model_fields:
                raise ConfigError(
                    f"environment {name}: there is no section {section!r} of settings; one of "
                    f"{', '.join(Settings.model_fields)} is accepted."
                )
