"""The synchronous client, generated from _async.py by unasync.py."""
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from . import _core, types


class Satchel:
    """A server, as seen by the holder of one key. Close it, or use it in a with statement."""

    def __init__(
        self, base_url: str, api_key: str | None = None, *, timeout: httpx.Timeout | float = _core.TIMEOUT, tries: int = _core.TRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(base_url=_core.base_url(base_url), headers=_core.headers(api_key), timeout=timeout, transport=transport)
        self._tries = tries

    def __enter__(self) -> Satchel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def request(self, method: str, path: str, *, json: Any = None, params: Any = None, data: Any = None, files: Any = None) -> Any:
        """Calls any route of the API, such as request("GET", "/agents"), and returns its answer."""
        request = self._http.build_request(method, path, json=json, params=params, data=data, files=files)
        response = self._send(request)
        if response.is_error:
            raise _core.failure(response.status_code, response.content, response.headers.get("X-Request-Id", ""))
        return response.json() if response.content else None

    def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        attempt = 1
        while True:
            response = None
            try:
                response = self._http.send(request, stream=stream)
            except httpx.TransportError:
                delay = _core.retry_after(request.method, None, attempt, self._tries)
                if delay is None:
                    raise
            else:
                delay = _core.retry_after(request.method, response, attempt, self._tries)
                if delay is None:
                    return response
                response.close()
            time.sleep(delay)
            attempt += 1

    @contextmanager
    def _events(self, method: str, path: str, json: Any = None, deadline: _core.Deadline = _core.Deadline(None)) -> Iterator[Iterator[tuple[str, Any]]]:
        request = self._http.build_request(method, path, json=json, headers={"Accept": "text/event-stream"}, timeout=deadline.timeout(self._http.timeout))
        response = self._send(request, stream=True)
        try:
            if response.is_error:
                raise _core.failure(response.status_code, response.read(), response.headers.get("X-Request-Id", ""))
            yield _events(response)
        finally:
            response.close()

    def agent(self, id_or_name: str) -> Agent:
        return Agent(self, id_or_name)

    def create_agent(self, name: str, description: str = "") -> types.Agent:
        agent: types.Agent = self.request("POST", "/agents", json={"name": name, "description": description})
        return agent


def _events(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    events = _core.Events()
    for line in response.iter_lines():
        for event in events.feed(line.rstrip("\r\n")):
            yield event


class Agent:
    """What takes more than one request, for an agent by id or name."""

    def __init__(self, client: Satchel, id: str) -> None:
        self.client, self.id = client, id
        self.path = _core.path("agents", id)

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Calls a route of the agent, such as request("GET", "/contacts")."""
        return self.client.request(method, self.path + path, **options)

    def list(self, path: str, **params: Any) -> Iterator[Any]:
        """Yields the records of a list, such as list("/contacts", tag="vip"), from all of its pages."""
        while True:
            records, cursor = _core.page(self.request("GET", path, params=params))
            for record in records:
                yield record
            if not cursor:
                return
            params = {**params, "cursor": cursor}
            params.pop("offset", None)

    def upload(self, name: str, content: bytes, *, wait: int = 60) -> types.Source:
        """Uploads a document and waits until it is read, at most wait seconds."""
        made = self.request("POST", "/sources", params={"wait": wait}, data={"type": "file", "name": name}, files={"file": (name, content)})
        source: types.Source = _core.readable(made)
        return source

    def stream(self, message: str, *, conversation_id: str | None = None, fallback: str | None = None, model: str | None = None) -> Iterator[tuple[str, Any]]:
        """Asks, and yields events as they come: delta {"text"}, sources, tool_call, tool_result, and done with the answer."""
        body = _core.chat_body(message, conversation_id, fallback, model)
        with self.client._events("POST", self.path + "/chat", body) as events:
            for name, data in events:
                if name == _core.HEARTBEAT:
                    continue
                last = _core.chat_event(name, data)
                yield name, data
                if last:
                    return
        raise _core.SatchelError(200, "STREAM", "the stream of the answer ended early")

    def ask(self, message: str, *, conversation_id: str | None = None, fallback: str | None = None, model: str | None = None) -> types.ChatDetails:
        """Asks, and returns the complete answer."""
        last: Any = None
        for _, data in self.stream(message, conversation_id=conversation_id, fallback=fallback, model=model):
            last = data
        answer: types.ChatDetails = last
        return answer

    def run(self, workflow_id: str, input: dict[str, Any] | None = None, *, timeout: float | None = None) -> types.ExecutionDetails:
        """Executes a workflow and waits for its end, as wait does; one that fails raises ExecutionError."""
        started = self.request("POST", "/workflows/execute", json={"workflow_id": workflow_id, "input": input or {}})
        return self.wait(started["id"], timeout=timeout)

    def wait(self, execution_id: str, *, timeout: float | None = None) -> types.ExecutionDetails:
        """Waits for the end of an execution, even if the server restarts in between.

        After timeout seconds it raises TimeoutError, and the execution continues. When
        nothing happens, that may be half a minute late.
        """
        path = "/workflows/executions" + _core.path(execution_id)
        deadline = _core.Deadline(timeout)
        while True:
            ended = self._ended(path, deadline)
            if not ended and not deadline.passed():
                time.sleep(1)
            execution: types.ExecutionDetails | None = _core.completed(self.request("GET", path))
            if execution is not None:
                return execution
            if deadline.passed():
                raise TimeoutError(f"the execution {execution_id} has not ended")

    def _ended(self, path: str, deadline: _core.Deadline) -> bool:
        """Follows an execution to its end; False: its events were cut, or the time is up."""
        try:
            with self.client._events("GET", self.path + path + "/events", deadline=deadline) as events:
                for name, _ in events:
                    if name.startswith("execution."):
                        return True
                    if deadline.passed():
                        return False
        except httpx.TransportError:
            pass  # the next request shows whether the server is there
        return False

    @contextmanager
    def browse(self, **options: Any) -> Iterator[Session]:
        """Opens a browser session and closes it at the end of the with statement."""
        made = self.request("POST", "/browser", json=options)
        try:
            yield Session(self, made["id"])
        finally:
            self.request("DELETE", "/browser", params={"id": made["id"]})


class Session:
    """A browser session."""

    def __init__(self, agent: Agent, id: str) -> None:
        self.agent, self.id = agent, id

    def execute(self, *actions: types.Action) -> list[Any]:
        """Executes actions in their order and returns a result of each."""
        answer = self.agent.request("POST", "/browser" + _core.path(self.id) + "/execute", json={"actions": list(actions)})
        results: list[Any] = answer["results"]
        return results
