"""Operations of tiers take ids of entries, which the command line shortens."""

from recallog_service.models.long_term.ids import LISTED_BY as LISTED_BY
from recallog_service.models.long_term.ids import PARAMETERS as PARAMETERS
from recallog_service.models.long_term.ids import is_id as is_id
from recallog_service.models.long_term.ids import list_ids as list_ids

FACADE = "tiers"
