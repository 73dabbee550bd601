"""What asks a model for one purpose: given by the program, or made of the settings of that purpose."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from recallog_schemas.errors import ModelMisconfigured

if TYPE_CHECKING:
    from recallog.settings import Settings

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Asker(Generic[Asked]):
    """The settings `<name>`, `<name>_model`, `<name>_api_key` and `<name>_timeout_seconds`, and what they make.

    `Memory.open` takes what a program gives for the purpose as the argument `<name>`.
    """

    name: str
    """The purpose, such as "reflector"."""
    offline: Callable[[], Asked]
    """Makes what needs no model: where the setting has its default value."""
    endpoint: Callable[..., Asked]
    """Makes what asks an endpoint: called with its URL, the model, `api_key` and `timeout_seconds`."""

    def of_settings(self, settings: "Settings | None") -> Asked:
        """What the settings name, by default what needs no model. Raises `ModelMisconfigured`."""
        if settings is None:
            return self.offline()
        given = {name: getattr(settings, f"{self.name}_{name}") for name in ("model", "api_key", "timeout_seconds")}
        url = getattr(settings, self.name)
        if url == type(settings).model_fields[self.name].default:
            return self.offline()
        if given["model"] is None:
            name = f"RECALLOG_{self.name.upper()}"
            raise ModelMisconfigured(
                f"the {self.name} is an endpoint, and no model is named. Set {name}_MODEL, or leave {name} unset for "
                "the one that needs no model"
            )
        key = given["api_key"]
        return self.endpoint(
            url,
            given["model"],
            api_key=None if key is None else key.get_secret_value(),
            timeout_seconds=given["timeout_seconds"],
        )
