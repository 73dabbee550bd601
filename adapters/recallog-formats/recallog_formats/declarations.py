"""The formats that `declared.toml` declares, one name for each entry point."""

from importlib.resources import files

from recallog_service.formats import declared_in

_FORMATS = declared_in(files(__package__) / "declared.toml")

DISCORD = _FORMATS["discord"]
SHAREGPT = _FORMATS["sharegpt"]
VERCEL = _FORMATS["vercel"]
QWEN_CODE = _FORMATS["qwen-code"]
OPENCODE = _FORMATS["opencode"]
DROID = _FORMATS["droid"]
GROK = _FORMATS["grok"]
KIMI = _FORMATS["kimi"]
