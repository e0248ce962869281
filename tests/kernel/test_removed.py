"""Settings that are gone are refused with what to write now; what was stored with them is read."""

from typing import ClassVar

import pytest

from embedding.crawl.config import CrawlConfig
from embedding.crawl.lease import LeaseConfig
from embedding.kernel.config import Config, validate
from embedding.kernel.errors import ConfigError
from embedding.server.config import ServerConfig, SyncConfig
from embedding.settings import Settings, load_settings
from embedding.trends.config import TrendsConfig
from embedding.web.config import PageConfig
from embedding.worker.config import NodeConfig

WITH_REMOVED = (CrawlConfig, NodeConfig, ServerConfig, SyncConfig, TrendsConfig, PageConfig)
REMOVED = [(config, old) for config in WITH_REMOVED for old in config.REMOVED]


SECTIONS = [field.annotation for field in Settings.model_fields.values()]
ONE_VALUE = [(config, old) for config in SECTIONS for old in config.constants()]


@pytest.mark.parametrize(("config", "old"), ONE_VALUE)
def test_a_setting_that_has_one_value_now_is_refused_with_that_value(config, old):
    assert old not in config.model_fields
    with pytest.raises(ConfigError, match=f"'{old}' is no setting any more; leave it out: it is"):
        validate(config, {old: 1}, "yeoron.toml")


def test_the_digest_counts_constants_as_it_did_when_they_were_settings():
    class Before(Config):
        a: int = 1
        b: int = 2

    class Now(Config):
        a: int = 1
        b: ClassVar = 2

    assert Now().digest() == Before().digest()


@pytest.mark.parametrize(("config", "old"), REMOVED)
def test_a_setting_that_is_gone_is_refused_with_what_to_do(config, old):
    assert old not in config.model_fields
    with pytest.raises(ConfigError, match=f"'{old}' is no setting any more; .*") as refused:
        validate(config, {old: 1}, "yeoron.toml")
    assert config.REMOVED[old] in str(refused.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"server": {"prot": 1}}, "unknown setting 'server.prot'; did you mean 'port'?"),
        (
            {"crawl": {"leases": {"second": 5}}},
            "second'; did you mean 'seconds'?",
        ),
        ({"server": {"zzz": 1}}, "unknown setting 'server.zzz'; take it out."),
        (
            {"server": {"shards_dir": "/a"}},
            "is no setting any more; leave it out: shards keep their checkpoints in state_dir.",
        ),
        ({"severs": {}}, "unknown setting 'severs'; did you mean 'server'?"),
    ],
)
def test_an_unknown_setting_is_refused_with_what_to_do(given, sentence):
    with pytest.raises(ConfigError) as refused:
        validate(Settings, given, "yeoron.toml")
    assert str(refused.value).endswith(sentence)


INTERNAL = [
    (path, name)
    for path, config in (("server", ServerConfig), ("crawl.leases", LeaseConfig))
    for name in sorted(config.INTERNAL)
]


@pytest.mark.parametrize(("path", "name"), INTERNAL)
def test_a_field_that_programs_set_is_refused_in_a_file(tmp_path, path, name):
    file = tmp_path / "yeoron.toml"
    file.write_text(f"[{path}]\n{name} = {LeaseConfig().model_dump().get(name, 70_000)}\n")
    with pytest.raises(ConfigError, match=name):
        load_settings(file)
