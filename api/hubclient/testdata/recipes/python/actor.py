"""An actor in Python 3.8 or later, without packages: it consumes its bundles from the message hub."""

import email.utils
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

TIMEOUT = 100  # seconds in which nothing arrives: longer than a hub waits for data and for its store
MAX_RETRY_AFTER = 600  # seconds


class Refused(Exception):
    """The hub refuses a request, and says why."""

    def __init__(self, status, headers, body):
        self.status = status
        try:
            self.problem = json.loads(body)
        except ValueError:
            self.problem = {"title": "The answer is no problem document; is this a hub?"}
        self.retry_after = retry_after(headers)
        super().__init__("%s (%d): %s" % (self.problem.get("title"), status, self.problem.get("detail", "")))


class NotReceived(Exception):
    """The body was not received to its end, or is that of another bundle."""


def retry_after(headers):
    """Returns the pause that an answer asks for, in seconds. A date is compared with that of the answer."""
    text = headers.get("Retry-After", "")
    if text.isdigit():
        return min(int(text), MAX_RETRY_AFTER)
    date, now = email.utils.parsedate_tz(text), email.utils.parsedate_tz(headers.get("Date", ""))
    pause = email.utils.mktime_tz(date) - email.utils.mktime_tz(now) if date and now else 0
    return min(max(pause, 0), MAX_RETRY_AFTER)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # the request carries a token


class Actor:
    """Consumes the bundles of an actor. token() returns its token; without one, the hub believes the name."""

    def __init__(self, url, name, token=None, sleep=time.sleep):
        self.url, self.name, self.token, self.sleep = url.rstrip("/"), name, token, sleep
        self.opener = urllib.request.build_opener(NoRedirect)

    def call(self, method, path, headers=()):
        """Sends a request once and returns the answer, whose body is read by the caller."""
        request = urllib.request.Request(self.url + path, method=method, headers=dict(headers))
        request.add_header("X-Actor-Id", self.name)
        request.add_header("Accept-Encoding", "identity")  # whose bytes can be counted
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token())
        try:
            return self.opener.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as refused:
            with refused:
                raise Refused(refused.code, refused.headers, refused.read(1 << 20)) from None

    def peek(self, bundle_id=None, wait=30):
        """Returns the next bundle as (id, headers, body), None if no data has come."""
        query = {"bundleId": bundle_id} if bundle_id else {}
        with self.call("GET", "/v1/peek?" + urllib.parse.urlencode({**query, "wait": "%ds" % wait})) as answer:
            if answer.status == 204:
                return None
            return answer.headers["MessageId"], answer.headers, self.receive(answer)

    def receive(self, answer):
        """Returns the whole body of a bundle: if the connection breaks, it fetches the rest of that bundle."""
        bundle_id, tag, size = answer.headers["MessageId"], answer.headers["ETag"], int(answer.headers["Content-Length"])
        body, pause, failures = bytearray(), 0.1, 0
        read_into(body, answer)
        while len(body) < size:
            self.sleep(pause * random.uniform(0.5, 1))
            before = len(body)
            try:
                path, headers = "/v1/bundles/" + bundle_id, {"Range": "bytes=%d-" % before, "If-Range": tag}
                with self.call("GET", path, headers) as rest:
                    if rest.headers["ETag"] != tag:
                        raise NotReceived("the hub answered with another body")
                    if rest.status == 200:  # the whole once more
                        body.clear()
                    elif not rest.headers["Content-Range"].startswith("bytes %d-" % before):
                        raise NotReceived("the hub answered with another part of the body")
                    read_into(body, rest)
            except Refused as refused:
                if not is_temporary(refused):  # 404: another process of the actor has dequeued the bundle
                    raise NotReceived("the rest of the body cannot be fetched: %s" % refused)
                self.sleep(refused.retry_after)
            except OSError:
                pass  # no connection
            failures = 0 if len(body) > before else failures + 1
            pause = 0.1 if failures == 0 else min(2 * pause, 5)
            if failures > 10:
                raise NotReceived("bundle %s broke off after %d of %d bytes" % (bundle_id, len(body), size))
        return bytes(body)

    def dequeue(self, bundle_id, lost=False):
        """Confirms a bundle that was handed out. lost says that the answer to an earlier attempt was lost."""
        try:
            self.call("DELETE", "/v1/dequeue/" + bundle_id).close()
        except Refused as refused:
            if refused.status not in (404, 410):
                raise
            # After a lost answer, that attempt was it. Otherwise another process of the actor has dequeued the bundle.
            return lost
        return True

    def consume(self, handle, is_stopped=lambda: False, log=print):
        """Passes each bundle to handle(id, headers, body) and dequeues it when that returns. If it raises, the
        bundle is delivered again: handle may get a bundle more than once, and skips the events whose ids it has."""
        bundle_id, is_open, handled, lost, pause = None, False, None, False, 0.1
        while not is_stopped():
            try:
                if handled is None:
                    began = time.monotonic()
                    bundle_id = bundle_id or str(uuid.uuid4())  # a peek whose answer is lost is repeated for the same bundle
                    bundle, is_open = self.peek(None, wait=0) if is_open else self.peek(bundle_id), False
                    if bundle is None:
                        if time.monotonic() - began < 15:  # the hub is about to stop, or the bundle that was open is dequeued
                            self.sleep(random.uniform(0.5, 1))
                        continue
                    bundle_id = bundle[0]
                    handle(*bundle)
                    handled, lost = bundle_id, False
                self.dequeue(handled, lost)
                bundle_id, handled, pause = None, None, 0.1
            except Exception as error:  # of the handler, too
                if isinstance(error, Refused) and error.status == 409 and handled is None:
                    # Another bundle is open, perhaps of a process that has ended: the next peek takes it.
                    bundle_id, is_open = None, True
                    continue
                if isinstance(error, Refused) and error.status == 409:
                    handled = None  # its content was deleted, and made again, since it was fetched: fetch it again
                elif isinstance(error, Refused) and not is_temporary(error):
                    raise
                lost = handled is not None and (not isinstance(error, Refused) or error.status >= 500 or lost)
                log("the attempt is repeated: %s" % error)
                self.sleep(pause * random.uniform(0.5, 1) + getattr(error, "retry_after", 0))
                pause = min(2 * pause, 60)


def read_into(body, answer):
    """Reads what arrives of an answer."""
    try:
        while True:
            chunk = answer.read(1 << 16)
            if not chunk:
                return
            body += chunk
    except http.client.IncompleteRead as broken:
        body += broken.partial
    except OSError:
        pass  # the connection broke


def is_temporary(refused):
    """Says whether the same request may succeed later."""
    return refused.status in (429, 502, 503, 504)
