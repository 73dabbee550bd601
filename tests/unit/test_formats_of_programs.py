"""Files of many programs: each is kept whole, from its speakers, at its times, or refused with a reason."""

from collections import Counter

import pytest

from recallog_schemas.errors import InvalidEvent
from recallog_service.formats import Options, Source, registry
from support.formats import events, items
from support.installed import without_ours
from support.written_logs import FILES, REFUSED, Refused, Written


def source(data: bytes) -> Source:
    return Source(data.splitlines(keepends=True))


every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


@every_file
def test_every_word_is_kept_once_from_its_speaker_at_its_time(file: Written) -> None:
    found = items(registry.named(file.format), file.data)
    said = events(found)
    shown = [(event.agent, event.text or event.payload["persona"], event.at.isoformat()[:19]) for event in said]
    expected = [(agent, words, time or at) for (agent, words, time), (_, _, at) in zip(file.said, shown, strict=False)]
    assert shown == expected + list(file.said[len(shown) :])
    undated = [event.at.year for event, (_, _, time) in zip(said, file.said, strict=True) if time is None]
    assert set(undated) <= {2000}
    assert Counter(item.left_out for item in found if item.left_out) == file.left_out


@every_file
def test_it_is_recognised_as_what_it_is(file: Written) -> None:
    assert registry.format_of(source(file.data).sample).name == file.format


@every_file
def test_no_other_format_has_its_structure_unless_it_is_tried_later(file: Written) -> None:
    fitting = [name for name, each in registry.by_name().items() if each.structure.fits(source(file.data).sample)]
    assert fitting[0] == file.format
    assert set(fitting[1:]) <= set(file.also)


@every_file
def test_without_the_package_of_its_format_it_is_refused_and_the_package_is_named(file: Written) -> None:
    with without_ours():
        found = registry.recognised(source(file.data).sample)
        if found is None:
            with pytest.raises(InvalidEvent, match=f"recallog-formats reads the format {file.format}"):
                registry.format_of(source(file.data).sample)
    assert found is None or found.name == file.format


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: file.name)
def test_another_file_is_refused_with_a_reason(file: Refused) -> None:
    with pytest.raises(InvalidEvent, match=file.reason):
        registry.format_of(source(file.data).sample)


@every_file
def test_reading_it_again_gives_the_same_events(file: Written) -> None:
    one, two = ([item.event for item in registry.named(file.format).read(source(file.data), Options())] for _ in "12")
    assert one == two
