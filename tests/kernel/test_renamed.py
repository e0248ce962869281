"""Old names of settings: refused with the new one; what an earlier version stored is still read."""

import pytest

from embedding.exchange.topology import TopologyConfig
from embedding.kernel.config import current_names, validate
from embedding.kernel.errors import ConfigError
from embedding.server.config import ServerConfig
from embedding.training.request import TrainRequest
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


def test_a_training_begun_with_old_names_is_read_with_the_new_ones():
    stored = {"server": {"young_mentions": 7, "port": 1}, "topology": {"groups": 2}, "seed": None}
    assert current_names(TrainRequest, stored) == {
        "server": {"rare_mentions": 7, "port": 1},
        "topology": {"aggregators": 2},
        "seed": None,
    }
