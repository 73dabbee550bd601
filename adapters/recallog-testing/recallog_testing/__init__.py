"""Tests of custom projections and reactors, without services and files.

```python
driver = ProjectionDriver(MyProjection())
driver.given(Event(space="village", agent="baker", kind="agent.spoke", turn=1, payload={"text": "Bread!"}))
assert driver.row(MY_TABLE, "village", "baker") == MyRow(...)
```

```python
driver = ReactorDriver(MyReactor(), projections=[MyProjection()])
driver.given(Event(space="village", agent="baker", kind="agent.spoke", turn=1, payload={"text": "Bread!"}))
assert [event.text for event in driver.answer()] == [...]
driver.check()
```
"""

from recallog_testing.drivers import ProjectionDriver, ReactorDriver

__all__ = ["ProjectionDriver", "ReactorDriver"]
