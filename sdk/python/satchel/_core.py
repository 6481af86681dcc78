"""What the synchronous and the asynchronous client share."""
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import httpx

TRIES = 5
MAX_WAIT = 90.0  # seconds; rate windows are a minute
TIMEOUT = httpx.Timeout(30, read=360)  # the longest wait that the API offers is five minutes
HEARTBEAT = ""  # the name of an event without data, which shows that the connection is there
ENDED = {"complete", "errored", "terminated"}


class SatchelError(Exception):
    """An error that the server answered with."""

    def __init__(self, status: int, code: str, message: str, details: dict[str, Any] | None = None, request_id: str = "") -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status, self.code, self.message, self.details = status, code, message, details or {}
        self.request_id = request_id  # by which the server's log names the request


class ExecutionError(Exception):
    """An execution that did not complete."""

    def __init__(self, execution: Any) -> None:
        super().__init__(f"the execution {execution['id']} is {execution['status']}: {(execution.get('error') or {}).get('message', '')}")
        self.execution = execution


def base_url(address: str) -> str:
    return address.rstrip("/").removesuffix("/api") + "/api"


def headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def path(*parts: str) -> str:
    return "".join("/" + quote(part, safe="") for part in parts)


def retry_after(method: str, response: httpx.Response | None, attempt: int, tries: int) -> float | None:
    """Returns after how many seconds a request may be sent again; None: it may not be.

    What the server refused for its rate is sent again when the server says;
    requests that only read also after failures that pass.
    """
    reads = method == "GET"
    if attempt >= tries:
        return None
    backoff = min(0.25 * 2**attempt, 8.0)
    if response is None:
        return backoff if reads else None
    if not (response.status_code == 429 or (reads and response.status_code in (502, 503, 504))):
        return None
    delay = seconds(response.headers.get("Retry-After", ""), backoff)
    return delay if delay <= MAX_WAIT else None


def seconds(given: str, default: float) -> float:
    """Returns the seconds of a Retry-After header, which has them or a date."""
    if given.isascii() and given.isdigit():
        return float(given)
    try:
        return max(parsedate_to_datetime(given).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError):
        return default


def failure(status: int, body: bytes, request_id: str = "") -> SatchelError:
    try:
        error = json.loads(body)["error"]
        return SatchelError(status, error["code"], error["message"], error.get("details"), request_id)
    except (ValueError, KeyError, TypeError):
        return SatchelError(status, "HTTP", "the server answers without an explanation", request_id=request_id)


def page(answer: dict[str, Any]) -> tuple[list[Any], str | None]:
    """Returns the records of a list, and the cursor of its next page."""
    meta = answer["meta"]
    records: list[Any] = next(value for value in answer.values() if isinstance(value, list))
    return records, meta.get("cursor") or meta.get("next_cursor")


class Deadline:
    """Ends a wait."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def passed(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def timeout(self, default: httpx.Timeout) -> httpx.Timeout:
        """Returns a timeout that reads until the deadline at most."""
        left = None if self._end is None else max(self._end - time.monotonic(), 0.01)
        if left is None or (default.read is not None and default.read <= left):
            return default
        return httpx.Timeout(connect=default.connect, read=left, write=default.write, pool=default.pool)


class Events:
    """Takes the lines of a stream and returns its server-sent events."""

    def __init__(self) -> None:
        self._name, self._data = "message", list[str]()

    def feed(self, line: str) -> Iterator[tuple[str, Any]]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line.startswith(":"):
            yield HEARTBEAT, None
        elif field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif not line and self._data:
            name, text = self._name, "\n".join(self._data)
            self._name, self._data = "message", []
            yield name, json.loads(text)


def chat_body(message: str, conversation_id: str | None, fallback: str | None, model: str | None) -> dict[str, Any]:
    body = {"message": message, "conversation_id": conversation_id, "fallback": fallback, "model": model, "stream": True}
    return {name: value for name, value in body.items() if value is not None}


def chat_event(name: str, data: Any) -> bool:
    """Reports whether an event is the last of an answer; raises that of a failure."""
    if name == "error":
        raise failure(200, json.dumps(data).encode())
    return name == "done"


def readable(source: Any) -> Any:
    if source["status"] == "error":
        error = source.get("error") or {}
        raise SatchelError(200, error.get("code", "ERROR"), error.get("message", "it cannot be read"))
    return source


def completed(execution: Any) -> Any:
    """Returns an execution that is complete, None for one that goes on."""
    if execution["status"] not in ENDED:
        return None
    if execution["status"] != "complete":
        raise ExecutionError(execution)
    return execution
