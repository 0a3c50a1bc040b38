"""Tests the recipe for Python against a hub that the suite starts. MESSAGEHUB is the path of the hub's program."""

import http.server
import json
import os
import re
import subprocess
import threading
import unittest
import urllib.request
import uuid

from actor import Actor, NotReceived, Refused

BODY = b'[{"id":"1"},{"id":"2"}]'


class Faulty(http.server.BaseHTTPRequestHandler):
    """Serves each request by the next step of its server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.seen.append(self.command + " " + self.path)
        status, headers, body, end = self.server.steps.pop(0)
        if status is None:
            self.close_connection = True
            return
        self.send_response_only(status)
        start = int(re.search(r"\d+", self.headers["Range"]).group()) if status == 206 else 0
        for name, value in headers.items():
            self.send_header(name, value)
        if status == 206:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (start, len(body) - 1, len(body)))
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start:end])
        if end is not None:
            self.close_connection = True

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


def bundle(end=None, status=200, tag='"t"'):
    return status, {"MessageId": "b", "ETag": tag}, BODY, end


def problem(status, **headers):
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps({"title": "A problem"}).encode(), None


OK, NO_DATA, NO_ANSWER = (200, {}, b"", None), (204, {}, b"", None), (None, {}, b"", None)


class Recipe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        environ = {**os.environ, "MESSAGEHUB_ADMIN_TOKEN": "a-token-of-the-operators"}
        cls.hub = subprocess.Popen(
            [os.environ["MESSAGEHUB"], "serve", "--in-memory", "--listen", "127.0.0.1:0", "--bus-listen=", "--blob-listen="],
            env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        cls.url = next(found.group(1) for found in (re.search(r"listens on (\S+) and", line) for line in cls.hub.stdout) if found)

    @classmethod
    def tearDownClass(cls):
        cls.hub.terminate()
        cls.hub.stdout.close()
        cls.hub.wait()

    def announce(self, n):
        name = str(uuid.uuid4())
        events = [
            {"id": str(uuid.uuid4()), "recipient": name, "origin": "TimeSeries", "contentType": "measured-data", "documentType": "D18",
             "supportsBundling": True, "weight": 1, "payload": i}
            for i in range(n)
        ]
        request = urllib.request.Request(self.url + "/v1/data-available", json.dumps(events).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request).close()
        return name, [e["id"] for e in events]

    def faulty(self, *steps):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
        server.steps, server.seen, pauses = list(steps), [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        actor = Actor("http://127.0.0.1:%d" % server.server_address[1], "a", sleep=pauses.append)
        return actor, server, pauses

    def test_consumes_all_events_in_order(self):
        name, ids = self.announce(2500)
        got = []
        Actor(self.url, name).consume(lambda _, __, body: got.extend(e["id"] for e in json.loads(body)), lambda: len(got) == len(ids))
        self.assertEqual(ids, got)

    def test_delivers_again_what_was_not_handled(self):
        name, _ = self.announce(2)
        bundles = []

        def handle(bundle_id, *_):
            bundles.append(bundle_id)
            if len(bundles) == 1:
                raise ValueError("no room")

        Actor(self.url, name, sleep=lambda _: None).consume(handle, lambda: len(bundles) == 2, log=lambda _: None)
        self.assertEqual(bundles[0], bundles[1])
        self.assertIsNone(Actor(self.url, name).peek(wait=0))

    def test_takes_the_bundle_that_is_open(self):
        name, _ = self.announce(1)
        opened, got = Actor(self.url, name).peek()[0], []
        Actor(self.url, name).consume(lambda bundle_id, *_: got.append(bundle_id), lambda: got)
        self.assertEqual([opened], got)

    def test_resumes_a_body_that_broke_off(self):
        actor, server, pauses = self.faulty(bundle(5), problem(503, Retry_After="7"), NO_ANSWER, bundle(9, 206), bundle())
        self.assertEqual(BODY, actor.peek(wait=0)[2])
        self.assertEqual("GET /v1/bundles/b", server.seen[-1])
        self.assertIn(7, pauses)

    def test_refuses_the_rest_of_another_body(self):
        actor, _, _ = self.faulty(bundle(5), bundle(tag='"u"'))
        self.assertRaises(NotReceived, actor.peek, wait=0)

    def test_honours_retry_after_and_handles_once(self):
        actor, server, pauses = self.faulty(problem(429, Retry_After="30"), bundle(), problem(503, Retry_After="20"), NO_ANSWER, problem(404), problem(403))
        handled = []
        with self.assertRaises(Refused):
            actor.consume(lambda bundle_id, *_: handled.append(bundle_id), log=lambda _: None)
        self.assertEqual(["b"], handled)
        self.assertEqual([30, 20, 0], [int(p) for p in pauses])
        self.assertEqual(3, sum(s.startswith("DELETE") for s in server.seen))

    def test_fetches_again_what_was_made_again(self):
        actor, _, _ = self.faulty(bundle(), problem(409), bundle(), OK, problem(403))
        handled = []
        with self.assertRaises(Refused):
            actor.consume(lambda bundle_id, *_: handled.append(bundle_id), log=lambda _: None)
        self.assertEqual(["b", "b"], handled)

    def test_a_date_counts_from_that_of_the_answer(self):
        date = "Tue, 01 Jan 2019 00:00:0%d GMT"
        actor, _, _ = self.faulty(problem(503, Retry_After=date % 9, Date=date % 0))
        with self.assertRaises(Refused) as refused:
            actor.peek()
        self.assertEqual(9, refused.exception.retry_after)

    def test_not_found_is_success_after_a_lost_answer_only(self):
        actor, _, _ = self.faulty(problem(404), problem(410))
        self.assertFalse(actor.dequeue("b"))
        self.assertTrue(actor.dequeue("b", lost=True))


if __name__ == "__main__":
    unittest.main()
