"""What a task read and wrote, for OpenLineage; the package of Airflow's provider for it asks.

Nothing here is imported unless `apache-airflow-providers-openlineage` (the extra `lineage`) is
installed and has somewhere to send events to (`trace.lineage`). Datasets are the assets; which
snapshot of them a task wrote is the dataset's version
(https://openlineage.io/docs/spec/facets/dataset-facets/version_facet).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.sdk import Asset

SCHEME = "yeoron"


def to_dataset(asset: Asset, _context: Any = None, version: str | None = None) -> Any:
    """OpenLineage's dataset of an asset: `yeoron://snapshots` is `snapshots` in the platform.

    Airflow's providers manager finds it by the provider's `asset-uris`.
    """
    from airflow.providers.openlineage.conf import namespace
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet

    facets: Any = {}
    if version is not None:
        facets["version"] = DatasetVersionDatasetFacet(datasetVersion=version)
    return Dataset(f"{SCHEME}://{namespace()}", urlsplit(asset.uri).netloc, facets=facets)


def of_task(operator: Any) -> Any:
    """The lineage of a task that has run: its inlets and outlets, and of which snapshot."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    version = getattr(operator, "snapshot_id", None)
    return OperatorLineage(
        inputs=_datasets(operator.inlets, version), outputs=_datasets(operator.outlets, version)
    )


def _datasets(assets: Iterable[Any], version: str | None) -> list[Any]:
    ours = [asset for asset in assets if getattr(asset, "uri", "").startswith(f"{SCHEME}://")]
    # The list of sources has no snapshots.
    return [
        to_dataset(asset, version=None if asset.name == "sources" else version) for asset in ours
    ]
