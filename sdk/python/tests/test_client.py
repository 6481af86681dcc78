import asyncio
import base64
import hashlib
import hmac
import time
import unittest
from collections.abc import Iterator
from email.utils import formatdate
from unittest import mock

import httpx

from satchel import AsyncSatchel, Satchel, SatchelError, WebhookError, verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Client(unittest.TestCase):
    def test_upload_is_sent_again_after_retry_after(self) -> None:
        posts: list[bytes] = []

        def answer(request: httpx.Request) -> httpx.Response:
            posts.append(request.read())
            if len(posts) == 1:
                return httpx.Response(429, headers={"Retry-After": "17"})
            return httpx.Response(201, json={"id": "source-1", "status": "ready"})

        with mock.patch("time.sleep") as sleep, Satchel("http://127.0.0.1:1", "key", transport=httpx.MockTransport(answer)) as satchel:
            self.assertEqual(satchel.agent("a").upload("a.txt", b"all of it")["id"], "source-1")
        sleep.assert_called_once_with(17.0)
        self.assertEqual(posts[0], posts[1])
        self.assertIn(b"all of it", posts[1])

    def test_only_reads_are_repeated(self) -> None:
        for method, tries in (("GET", 5), ("POST", 1)):
            transport = mock.Mock(side_effect=lambda request: httpx.Response(503))
            with mock.patch("time.sleep"), Satchel("http://127.0.0.1:1", transport=httpx.MockTransport(transport)) as satchel:
                with self.assertRaises(SatchelError):
                    satchel.request(method, "/agents")
            self.assertEqual(transport.call_count, tries)

    def test_tries_dates_and_request_ids(self) -> None:
        date = formatdate(time.time() + 60, usegmt=True)
        transport = mock.Mock(side_effect=lambda request: httpx.Response(429, headers={"Retry-After": date, "X-Request-Id": "request-1"}))
        with mock.patch("time.sleep") as sleep, Satchel("http://127.0.0.1:1", tries=2, transport=httpx.MockTransport(transport)) as satchel:
            with self.assertRaises(SatchelError) as raised:
                satchel.create_agent("x")
        self.assertEqual((transport.call_count, raised.exception.request_id), (2, "request-1"))
        self.assertTrue(8 < sleep.call_args.args[0] <= 60, sleep.call_args)

    def test_list_follows_cursors(self) -> None:
        asked: list[str] = []

        def answer(request: httpx.Request) -> httpx.Response:
            asked.append(request.url.query.decode())
            if "cursor" in request.url.params:
                return httpx.Response(200, json={"contacts": [{"name": "Cid"}], "meta": {"total": 3}})
            return httpx.Response(200, json={"contacts": [{"name": "Ada"}, {"name": "Bob"}], "meta": {"total": 3, "cursor": "c+2"}})

        async def names() -> list[str]:
            async with AsyncSatchel("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as satchel:
                return [contact["name"] async for contact in satchel.agent("a").list("/contacts", tag="vip", offset=0)]

        self.assertEqual(asyncio.run(names()), ["Ada", "Bob", "Cid"])
        with Satchel("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as satchel:
            self.assertEqual(len(list(satchel.agent("a").list("/contacts", tag="vip", offset=0))), 3)
        self.assertEqual(asked, 2 * ["tag=vip&offset=0", "tag=vip&cursor=c%2B2"])

    def test_wait_outlives_a_restart(self) -> None:
        streams = 0

        class Cut(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                yield b"event: node.started\ndata: {}\n\n"
                raise httpx.ReadError("cut")

        def answer(request: httpx.Request) -> httpx.Response:
            nonlocal streams
            if not request.url.path.endswith("/events"):
                return httpx.Response(200, json={"id": "x", "status": "complete" if streams > 1 else "running"})
            streams += 1
            return httpx.Response(200, stream=Cut()) if streams == 1 else httpx.Response(200, text="event: execution.complete\ndata: {}\n\n")

        with mock.patch("time.sleep") as sleep, Satchel("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as satchel:
            self.assertEqual(satchel.agent("a").wait("x")["status"], "complete")
        sleep.assert_called_once_with(1)
        self.assertEqual(streams, 2)

    def test_wait_has_a_limit(self) -> None:
        now, beats = 0.0, 0

        class Idle(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                nonlocal now, beats
                while True:
                    now, beats = now + 25, beats + 1
                    yield b": ping\n\n"

        def answer(request: httpx.Request) -> httpx.Response:
            if not request.url.path.endswith("/events"):
                return httpx.Response(200, json={"id": "x", "status": "running"})
            self.assertEqual(request.extensions["timeout"]["read"], 60)
            return httpx.Response(200, stream=Idle())

        with mock.patch("time.monotonic", lambda: now), Satchel("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as satchel:
            with self.assertRaises(TimeoutError):
                satchel.agent("a").wait("x", timeout=60)
        self.assertEqual(beats, 3)

    def test_stream_that_ends_early(self) -> None:
        text = ': hi\n\nevent: delta\ndata: {"text":"On"}\n\n'

        async def ask() -> None:
            async with AsyncSatchel("http://127.0.0.1:1", transport=httpx.MockTransport(lambda request: httpx.Response(200, text=text))) as satchel:
                await satchel.agent("a").ask("When?")

        with self.assertRaisesRegex(SatchelError, "ended early"):
            asyncio.run(ask())

    def test_webhooks(self) -> None:
        body, at = b'{"type":"contact.created"}', 1795273448
        mac = hmac.new(base64.b64decode(SECRET[6:]), f"event-1.{at}.".encode() + body, hashlib.sha256).digest()
        headers = {"Webhook-Id": "event-1", "Webhook-Timestamp": str(at), "Webhook-Signature": "v1,! v1," + base64.b64encode(mac).decode()}
        self.assertEqual(verify_webhook(SECRET, headers, body, at)["type"], "contact.created")
        for wrong, now in ((body + b" ", at), (body, at + 3600)):
            with self.assertRaises(WebhookError):
                verify_webhook(SECRET, headers, wrong, now)


if __name__ == "__main__":
    unittest.main()
