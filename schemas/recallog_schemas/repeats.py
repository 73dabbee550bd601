"""Repeats and conflicts: two events of one space with the same id.

The second is a repeat if it has the same content as the first, else a conflict. The content is every field except `at`,
which is often the time of the call, so that publishing the same event again is harmless. The first event counts, with
its time. A kind may leave out payload fields too (`Kind.uncompared`), such as the rule that publishing adds. The source
class that a payload states is left out as well: importing a file again may state another one.
"""

from typing import Any

import msgspec

from recallog_schemas import kinds, triggers
from recallog_schemas.codec import with_enough_stack
from recallog_schemas.event import Event, fields_of
from recallog_schemas.kinds import trust

_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_ABSENT = object()


@with_enough_stack
def content_of(event: Event) -> bytes:
    """The content of `event`: its compared fields, defaults included, as JSON with sorted keys.

    Whether its bytes have defaults written out, other white space or an old envelope therefore makes no difference. The
    content of an answer to a trigger is the trigger's id: the first answer counts, and later ones are repeats whatever
    they contain.
    """
    trigger = triggers.answered_by(event)
    if trigger is not None:
        return trigger.id.encode()
    return _encode_sorted(_list_compared(event))


@with_enough_stack
def first_difference(first: Event, second: Event) -> str:
    """The path of the first field in which the contents of two events differ, for example `payload.text`.

    Fields are compared in the order of the envelope, those of objects in the order of the first event. "" for a repeat.
    """
    if content_of(first) == content_of(second):
        return ""
    ours, theirs = _list_compared(first), _list_compared(second)
    names = [name for name in type(first).model_fields if name != "at"]
    return _difference({name: ours.get(name) for name in names}, {name: theirs.get(name) for name in names})


def compared_payload(event: Event) -> dict[str, Any]:
    """The payload of `event` without the fields in which a repeat may differ."""
    payload = event.payload
    uncompared = kinds.kind_of(event.kind).uncompared
    if trust.rank_of(payload.get(trust.TRUST)) is not None:
        uncompared |= {trust.TRUST}
    if uncompared.isdisjoint(payload):
        return payload
    return {name: value for name, value in payload.items() if name not in uncompared}


def _list_compared(event: Event) -> dict[str, Any]:
    fields = fields_of(event)
    del fields["at"]
    fields["payload"] = compared_payload(event)
    return fields


def _difference(first: Any, second: Any) -> str:
    """The path below two values that differ; "" if they differ as a whole."""
    if isinstance(first, dict) and isinstance(second, dict):
        pairs = {key: (first.get(key, _ABSENT), second.get(key, _ABSENT)) for key in [*first, *second]}
    elif isinstance(first, list | tuple) and isinstance(second, list | tuple):
        lists = [*first, *[_ABSENT] * (len(second) - len(first))], [*second, *[_ABSENT] * (len(first) - len(second))]
        pairs = {str(index): pair for index, pair in enumerate(zip(*lists, strict=True))}
    else:
        return ""
    path, (one, other) = next(item for item in pairs.items() if _differ(*item[1]))
    below = _difference(one, other)
    return f"{path}.{below}" if below else path


def _differ(first: Any, second: Any) -> bool:
    if first is _ABSENT or second is _ABSENT:
        return True
    return _encode_sorted(first) != _encode_sorted(second)  # encoded, since True == 1 == 1.0 in Python
