"""The weights of the channels of a preset, from the options of a query; and the check that options can be combined."""

from collections.abc import Collection, Mapping, Sequence

from recallog.retrieval.channels import (
    ENTITY,
    EVENT,
    FOUR_CHANNEL,
    HYBRID,
    KEYWORD,
    PRESETS,
    SEMANTIC,
    TEMPORAL,
    Channel,
    Preset,
)
from recallog_schemas.errors import InvalidArgument

VECTOR_WEIGHT = 0.6
"""The weight of `semantic` in `hybrid`; `keyword` has the rest."""


def of_preset(
    preset: Preset | None,
    channels: Sequence[Channel] | None,
    types: Collection[str] | None,
    vector_weight: float | None,
    recency_weight: float | None,
) -> Mapping[Channel, float]:
    """The weight of each channel that counts; {} without a preset.

    In `four_channel`, each channel weighs 1. With `recency_weight`, `temporal` has this weight, and the others have
    equal shares of the rest. Raises `InvalidArgument` for options that do not belong to the preset, or need one.
    """
    _check(preset, channels, types, vector_weight, recency_weight)
    if preset is None:
        return {}
    if preset == HYBRID:
        by_vector = VECTOR_WEIGHT if vector_weight is None else vector_weight
        weights: dict[Channel, float] = {SEMANTIC: by_vector, KEYWORD: 1 - by_vector}
    elif recency_weight is None:
        weights = dict.fromkeys(PRESETS[preset], 1.0)
    else:
        others = [channel for channel in PRESETS[preset] if channel != TEMPORAL]
        weights = {**dict.fromkeys(others, (1 - recency_weight) / len(others)), TEMPORAL: recency_weight}
    return {
        channel: weight
        for channel, weight in weights.items()
        if weight and channel in (weights if channels is None else channels)
    }


def _check(
    preset: Preset | None,
    channels: Sequence[Channel] | None,
    types: Collection[str] | None,
    vector_weight: float | None,
    recency_weight: float | None,
) -> None:
    if vector_weight is not None and preset != HYBRID:
        raise _invalid("vector_weight", f"only the preset {HYBRID} has this weight; add preset={HYBRID}")
    if recency_weight is not None and preset != FOUR_CHANNEL:
        raise _invalid("recency_weight", f"only the preset {FOUR_CHANNEL} has this weight; add preset={FOUR_CHANNEL}")
    if preset is None:
        if channels is not None and ENTITY in channels:
            path = f"channels.{list(channels).index(ENTITY)}"
            raise _invalid(path, f"only the preset {FOUR_CHANNEL} has this channel; add preset={FOUR_CHANNEL}")
        return
    for number, channel in enumerate(channels or ()):
        if channel not in PRESETS[preset]:
            known = ", ".join(PRESETS[preset])
            raise _invalid(f"channels.{number}", f"the preset {preset} has no channel {channel}; it has {known}")
    if types is not None and EVENT in types:
        raise _invalid("types", f"a preset ranks entries alone; leave out {EVENT!r}, or the preset")


def _invalid(path: str, why: str) -> InvalidArgument:
    return InvalidArgument(f"{path}: {why}", path=path, rule="combination")
