"""Old settings are refused with what to write now; what an earlier version stored is still read."""

import pytest

from embedding.exchange.topology import TopologyConfig
from embedding.kernel.config import current_names, validate
from embedding.kernel.errors import ConfigError
from embedding.server.config import ServerConfig
from embedding.settings import Settings
from embedding.training.request import TrainRequest
from embedding.trends.config import TrendsConfig
from embedding.worker.config import NodeConfig

RENAMED = [
    (config, old, new)
    for config in (ServerConfig, NodeConfig, TopologyConfig)
    for old, new in config.RENAMED.items()
]


@pytest.mark.parametrize(("config", "old", "new"), RENAMED)
def test_an_old_name_is_refused_with_the_new_one(config, old, new):
    assert new in config.model_fields
    with pytest.raises(ConfigError, match=f"'{old}' is called '{new}' now"):
        validate(config, {old: 1}, "yeoron.toml")


REMOVED = [(config, old) for config in (ServerConfig, TrendsConfig) for old in config.REMOVED]


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
            {"web": {"trends": {"neighbour": 5}}},
            "neighbour'; did you mean 'neighbours'?",
        ),
        ({"server": {"zzz": 1}}, "unknown setting 'server.zzz'; take it out."),
        ({"severs": {}}, "unknown setting 'severs'; did you mean 'server'?"),
    ],
)
def test_an_unknown_setting_is_refused_with_what_to_do(given, sentence):
    with pytest.raises(ConfigError) as refused:
        validate(Settings, given, "yeoron.toml")
    assert str(refused.value).endswith(sentence)


def test_a_training_begun_with_old_names_is_read_with_the_new_ones():
    stored = {
        "server": {"young_mentions": 7, "usage_replicas": 4, "port": 1},
        "topology": {"groups": 2},
        "seed": None,
    }
    assert current_names(TrainRequest, stored) == {
        "server": {"rare_mentions": 7, "port": 1},
        "topology": {"aggregators": 2},
        "seed": None,
    }
