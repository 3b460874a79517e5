"""Who a number is: from what was typed, exported or sent by WhatsApp to one identity.

Pure: no Django, no database, no clock. `parse` is strict (imports, forms, the
API); `identity_of_whatsapp_id` is lenient (ids that WhatsApp itself sent).
"""

from audience.phones.numbering import Line, Phone, canonical, variants_of
from audience.phones.parsing import Finding, explain, parse
from audience.phones.rejection import PhoneRejected, Reason
from audience.phones.whatsapp import IdKind, WhatsAppId, identity_of_whatsapp_id

__all__ = [
    "Finding",
    "IdKind",
    "Line",
    "Phone",
    "PhoneRejected",
    "Reason",
    "WhatsAppId",
    "canonical",
    "explain",
    "identity_of_whatsapp_id",
    "parse",
    "variants_of",
]
