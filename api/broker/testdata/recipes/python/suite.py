"""Tests the recipes for Python against a hub that the suite starts. MESSAGEHUB is the path of the hub's program.

The hub creates the producer, the channel and the consumers at its start.
"""

import contextlib
import http.client
import http.server
import logging
import os
import queue
import re
import subprocess
import threading
import time
import unittest
import urllib.parse
import urllib.request

from consumer import Consumer, RetryLater, verify
from producer import Producer, Refused

ADMIN = "a-token-of-the-operators"
TOKENS = {"shop": "of-the-shop", "prices": "of-the-channel", "plain": "of-the-consumer", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
WAIT = 60  # seconds, limit for everything that a test waits for


class Stand:
    """A consumer that records its messages."""

    def __init__(self, token):
        self.got, self.failures = queue.Queue(), []
        self.server = Consumer(("127.0.0.1", 0), token, self.handle)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def handle(self, message):
        self.got.put(message)
        if self.failures:
            raise self.failures.pop(0)

    def next(self):
        return self.got.get(timeout=WAIT)


@contextlib.contextmanager
def serving(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.disable(logging.ERROR)  # hides the errors of handlers that fail on purpose
        cls.consumers = {name: Stand(TOKENS[name]) for name in ("plain", "secret")}
        parties = ", ".join(
            f"{{channel: prices, id: {name}, token: {TOKENS[name]}, callback-url: 'http://127.0.0.1:{c.port}/hook'}}" for name, c in cls.consumers.items()
        )
        environ = {
            **os.environ,
            "MESSAGEHUB_ADMIN_TOKEN": ADMIN,
            "MESSAGEHUB_PUSH_ALLOW": "127.0.0.0/8",
            "MESSAGEHUB_PUSH_INSECURE_HTTP": "true",
            "MESSAGEHUB_BROKER_RETRY_DELAY": "50ms",
            "MESSAGEHUB_BROKER_PRODUCERS": f"[{{id: shop, token: {TOKENS['shop']}}}]",
            "MESSAGEHUB_BROKER_CHANNELS": f"[{{id: prices, token: {TOKENS['prices']}}}]",
            "MESSAGEHUB_BROKER_CONSUMERS": f"[{parties}]",
        }
        cls.hub = subprocess.Popen(
            [os.environ["MESSAGEHUB"], "serve", "--in-memory", "--listen", "127.0.0.1:0", "--bus-listen=", "--blob-listen="],
            env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        for line in cls.hub.stdout:
            if found := re.search(r"listens on (\S+) and", line):
                cls.url = found[1]
                break

    @classmethod
    def tearDownClass(cls):
        cls.hub.terminate()
        cls.hub.wait()
        cls.hub.stdout.close()
        for c in cls.consumers.values():
            c.server.shutdown()
            c.server.server_close()

    def producer(self, **more):
        return Producer(**{"url": self.url, "channel": "prices", "channel_token": TOKENS["prices"], "id": "shop", "token": TOKENS["shop"], **more})

    def both(self):
        return [c.next() for c in self.consumers.values()]

    def test_1_a_message_reaches_each_consumer_as_its_producer_sent_it(self):
        id = self.producer().publish("ä;b\n".encode(), "offer-1", priority=7, content_type="text/csv", metadata={"X-Trace": "t-1"})
        for got in self.both():
            self.assertEqual((got.message, got.payload.decode()), (id, "ä;b\n"))
            self.assertEqual((got.channel, got.priority, got.attempts, got.content_type), ("prices", 7, 0, "text/csv"))
            self.assertEqual(got.metadata, {"X-Trace": "t-1"})

    def test_2_a_message_that_is_not_handled_comes_again(self):
        plain = self.consumers["plain"]
        plain.failures = [RuntimeError("the disk is full"), RetryLater(0)]
        self.producer().publish(b"{}", "offer-2")
        got = [plain.next() for _ in range(3)]
        self.assertEqual([m.attempts for m in got], [0, 1, 2])
        self.assertEqual(len({m.id for m in got}), 1)
        self.consumers["secret"].next()

    def test_3_a_message_is_stored_once_whatever_is_lost_on_the_way(self):
        hub, calls = urllib.parse.urlsplit(self.url), []

        class Flaky(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                calls.append(body)
                if len(calls) == 1:
                    return  # the hub stores nothing
                if len(calls) == 2:
                    self.send_response(503)
                    self.send_header("Retry-After", "0")
                    return self.end_headers()
                connection = http.client.HTTPConnection(hub.hostname, hub.port)
                headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Connection")}
                connection.request("POST", self.path, body, headers)
                answer = connection.getresponse()
                if len(calls) > 3:  # the response to the third request is lost
                    self.send_response(answer.status)
                    self.send_header("Location", answer.headers["Location"])
                    self.end_headers()
                connection.close()

            def log_message(self, *args):
                pass

        with serving(Flaky) as url:
            id = self.producer(url=url).publish(b'{"n":3}', "offer-3")
        self.assertEqual(len(calls), 4)
        self.assertEqual(self.producer().publish(b'{"n":3}', "offer-3"), id)
        self.assertEqual([got.message for got in self.both()], [id, id])
        self.producer().publish(b"{}", "offer-4")
        self.assertEqual([got.payload for got in self.both()], [b"{}", b"{}"], "the message before came once")

    def test_4_what_the_hub_refuses_is_not_sent_again(self):
        with self.assertRaises(Refused) as conflict:
            self.producer().publish(b"{}", "offer-3")
        self.assertEqual(conflict.exception.status, 409)
        with self.assertRaises(Refused) as forbidden:
            self.producer(token="another").publish(b"{}", "offer-5")
        self.assertEqual(forbidden.exception.status, 403)
        self.assertNotIn("another", str(forbidden.exception))
        with self.assertRaises(OSError):
            self.producer(url="http://127.0.0.1:1", budget=0.2).publish(b"{}", "offer-5")

    def test_5_a_call_that_is_not_from_the_hub_is_refused(self):
        calls = queue.Queue()

        class Listener(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                calls.put((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        with serving(Listener) as url:
            form = urllib.parse.urlencode({"token": TOKENS["plain"], "callbackUrl": url}).encode()
            put = urllib.request.Request(f"{self.url}/broker/channel/prices/consumer/late", data=form, method="PUT", headers={"X-Broker-Admin-Token": ADMIN})
            with urllib.request.urlopen(put) as answer:
                self.assertEqual(answer.status, 201)
            self.producer().publish(b"paid", "offer-6")
            self.both()
            headers, body = calls.get(timeout=WAIT)

        token = TOKENS["plain"]
        verify(token, headers, body)
        lower = {name.lower(): value for name, value in headers.items()}

        class Changed(dict):
            def get(self, name, default=None):
                return super().get(name.lower(), default)

        def without(name):
            return Changed({n: v for n, v in lower.items() if n != name})

        for name, arguments in {
            "another token": ("another", headers, body),
            "no token": (token, without("x-broker-consumer-token"), body),
            "another body": (token, headers, b"PAID"),
            "another id": (token, Changed({**lower, "webhook-id": "x"}), body),
            "no signature": (token, without("webhook-signature"), body),
            "no timestamp": (token, without("webhook-timestamp"), body),
            "an old call": (token, headers, body, time.time() + 3600),
            "an early call": (token, headers, body, time.time() - 3600),
        }.items():
            with self.subTest(name), self.assertRaises(ValueError):
                verify(*arguments)

        for length, want in (("1", 401), (str((1 << 20) + 1), 413), ("x", 411)):
            connection = http.client.HTTPConnection("127.0.0.1", self.consumers["plain"].port)
            connection.putrequest("POST", "/hook")
            connection.putheader("Content-Length", length)
            connection.endheaders(b"x")
            self.assertEqual(connection.getresponse().status, want)
            connection.close()


if __name__ == "__main__":
    unittest.main()
