"""Verifies deliveries of webhooks, by Standard Webhooks."""
from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

TOLERANCE = 300  # seconds


class WebhookError(Exception):
    """A delivery that is not genuine."""


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, now: float | None = None) -> dict[str, Any]:
    """Returns the event of a delivery. body is the raw body; secret begins with whsec_."""
    given = {name.lower(): value for name, value in headers.items()}
    id, at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not (at.isascii() and at.isdigit()) or abs((time.time() if now is None else now) - int(at)) > TOLERANCE:
        raise WebhookError("the timestamp is missing or too far from now")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    want = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    for signature in given.get("webhook-signature", "").split():
        try:
            if signature.startswith("v1,") and hmac.compare_digest(base64.b64decode(signature[3:]), want):
                event: dict[str, Any] = json.loads(body)
                return event
        except binascii.Error:
            continue
    raise WebhookError("no signature matches")
