"""The key of the authors' pseudonyms reaches a node, and nothing else that is written or shown."""

from __future__ import annotations

from embedding.cluster import node_specs
from embedding.crawl.config import CrawlConfig
from embedding.kernel.config import WITH_SECRETS
from embedding.settings import Settings
from embedding.worker.spec import NodeSpec


def test_the_key_is_told_to_a_node_only() -> None:
    spec = NodeSpec(name="n", server="grpc://x:1", crawl=CrawlConfig(pseudonym_key="geheim"))
    shown = (spec.model_dump_json(), str(spec.model_dump(mode="json")), repr(spec), spec.digest())
    assert not any("geheim" in text for text in shown)
    told = NodeSpec.model_validate_json(spec.model_dump_json(context=WITH_SECRETS))
    assert told.crawl.pseudonym_key.get_secret_value() == "geheim"


def test_the_nodes_of_a_pool_share_a_key_that_nobody_set() -> None:
    specs = node_specs(Settings(cluster={"nodes": 2}), ())
    keys = {spec.crawl.pseudonym_key.get_secret_value() for spec in specs}
    assert len(specs) == 2
    assert len(keys) == 1
    assert len(keys.pop()) == 64
