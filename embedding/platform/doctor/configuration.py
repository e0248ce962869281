"""Do the settings mean anything? Settings that were given and have no effect are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from embedding.platform.doctor.diagnosis import Diagnosis, fine, warn
from embedding.settings import GivenSettings, Settings

_Idle = Callable[[Settings], bool]


def _policy(*names: str) -> _Idle:
    return lambda s: s.sync.policy not in names


def _without_shards(settings: Settings) -> bool:
    return settings.server.shards == 1 and settings.server.split == "rows"


_IDLE: dict[str, tuple[_Idle, str]] = {
    "sync.staleness": (_policy("ssp", "auto"), "sync.policy is not ssp"),
    "sync.backups": (_policy("backup"), "sync.policy is not backup"),
    "sync.n_push": (_policy("asp", "auto"), "sync.policy is not asp"),
    "sync.n_fetch": (_policy("asp", "auto"), "sync.policy is not asp"),
    "sync.tau": (_policy("easgd", "averaging"), "sync.policy is not easgd or averaging"),
    "sync.elasticity": (_policy("easgd"), "sync.policy is not easgd"),
    **{
        f"sync.lbfgs_{name}": (_policy("sandblaster"), "sync.policy is not sandblaster")
        for name in ("every", "batch_tokens", "portion_tokens", "iterations", "copies", "reach")
    },
    **{
        f"sync.auto_{name}": (_policy("auto"), "sync.policy is not auto")
        for name in ("alike", "apart", "stay_s")
    },
    "web.trends": (lambda _: True, "the page compares as [trends] says"),
    "server.adagrad_rate": (
        lambda s: s.server.optimizer != "adagrad",
        "server.optimizer is not adagrad",
    ),
    "server.shards_port": (_without_shards, "server.shards is 1"),
    "server.shards_dir": (_without_shards, "server.shards is 1"),
    "server.tls_client_ca": (lambda s: s.server.tls_cert is None, "there is no server.tls_cert"),
    "model.buckets": (lambda s: not s.model.traits.has_subwords, "the model has no n-grams"),
    "model.negative": (lambda s: not s.model.traits.draws_noise, "the model draws no noise"),
    "model.glove_alpha": (lambda s: s.model.model != "glove", "model.model is not glove"),
    "model.glove_ceiling": (lambda s: s.model.model != "glove", "model.model is not glove"),
    "model.shift": (lambda s: s.model.model != "sppmi", "model.model is not sppmi"),
    "model.min_learning_rate": (
        lambda s: s.model.schedule != "linear",
        "model.schedule is not linear",
    ),
    "model.window_swing": (
        lambda s: s.model.schedule != "window",
        "model.schedule is not window",
    ),
    **{
        f"stream.replay_{name}": (
            lambda s: s.stream.replay == "uniform",
            "stream.replay is uniform",
        )
        for name in ("alpha", "beta")
    },
    **{
        f"notify.{name}": (
            lambda s: not s.notify.email_to and not s.notify.webhook.get_secret_value(),
            "nobody is told: no notify.email_to and no webhook",
        )
        for name in ("words", "rankings", "false_discovery", "most")
    },
    **{
        f"notify.{name}": (lambda s: not s.notify.email_to, "there is no notify.email_to")
        for name in ("smtp_host", "smtp_port", "smtp_user", "smtp_password", "smtp_tls")
    },
}
"""Setting → where it has no effect, and why."""


def check_settings(settings: Settings, given: GivenSettings) -> Iterator[Diagnosis]:
    """Settings that were given and do nothing with the others as they are."""
    idle = [
        (f"{section}.{name}", given.origin(section, name))
        for section, values in given.values.items()
        for name in values
        if f"{section}.{name}" in _IDLE and _IDLE[f"{section}.{name}"][0](settings)
    ]
    for name, origin in idle:
        yield warn(f"{origin}: it has no effect, as {_IDLE[name][1]}.", "Leave it out.")
    if not idle:
        where = given.file or "no file, defaults and environment"
        yield fine(f"The settings ({where}) are valid, and all have an effect.")
