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

TIMEOUT = 100  # seconds without any bytes from the hub; longer than the hub waits for data and for its store
MAX_RETRY_AFTER = 600  # seconds


class Refused(Exception):
    """The hub refused a request. problem says why."""

    def __init__(self, status, headers, body):
        self.status = status
        try:
            self.problem = json.loads(body)
        except ValueError:
            self.problem = {"title": "The response is not a problem document. Is this a hub?"}
        self.retry_after = retry_after(headers)
        super().__init__("%s (%d): %s" % (self.problem.get("title"), status, self.problem.get("detail", "")))


class NotReceived(Exception):
    """The body was received incompletely, or belongs to another bundle."""


def retry_after(headers):
    """Returns the value of Retry-After in seconds. A date in it is compared with the header Date of the response."""
    text = headers.get("Retry-After", "")
    if text.isdigit():
        return min(int(text), MAX_RETRY_AFTER)
    date, now = email.utils.parsedate_tz(text), email.utils.parsedate_tz(headers.get("Date", ""))
    pause = email.utils.mktime_tz(date) - email.utils.mktime_tz(now) if date and now else 0
    return min(max(pause, 0), MAX_RETRY_AFTER)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # follows no redirects, because the request contains a token


class Actor:
    """Consumes the bundles of an actor. token() returns the token of the actor, for a hub that needs tokens."""

    def __init__(self, url, name, token=None, sleep=time.sleep):
        self.url, self.name, self.token, self.sleep = url.rstrip("/"), name, token, sleep
        self.opener = urllib.request.build_opener(NoRedirect)

    def call(self, method, path, headers=()):
        """Sends a request once and returns the response. The caller reads its body."""
        request = urllib.request.Request(self.url + path, method=method, headers=dict(headers))
        request.add_header("X-Actor-Id", self.name)
        request.add_header("Accept-Encoding", "identity")  # without compression, so that a range counts the received bytes
        if self.token:
            request.add_header("Authorization", "Bearer " + self.token())
        try:
            return self.opener.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as refused:
            with refused:
                raise Refused(refused.code, refused.headers, refused.read(1 << 20)) from None

    def peek(self, bundle_id=None, wait=30):
        """Returns the next bundle as (id, headers, body), or None if no data has arrived."""
        query = {"bundleId": bundle_id} if bundle_id else {}
        with self.call("GET", "/v1/peek?" + urllib.parse.urlencode({**query, "wait": "%ds" % wait})) as response:
            if response.status == 204:
                return None
            return response.headers["MessageId"], response.headers, self.receive(response)

    def receive(self, response):
        """Returns the whole body of a bundle. If the connection breaks, it fetches the rest of the body."""
        bundle_id, tag, size = response.headers["MessageId"], response.headers["ETag"], int(response.headers["Content-Length"])
        body, pause, failures = bytearray(), 0.1, 0
        read_into(body, response)
        while len(body) < size:
            self.sleep(pause * random.uniform(0.5, 1))
            before = len(body)
            try:
                path, headers = "/v1/bundles/" + bundle_id, {"Range": "bytes=%d-" % before, "If-Range": tag}
                with self.call("GET", path, headers) as rest:
                    if rest.headers["ETag"] != tag:
                        raise NotReceived("the hub responded with another body")
                    if rest.status == 200:  # the response is the whole body
                        body.clear()
                    elif not rest.headers["Content-Range"].startswith("bytes %d-" % before):
                        raise NotReceived("the hub responded with another part of the body")
                    read_into(body, rest)
            except Refused as refused:
                if not is_temporary(refused):  # 404: another process of the actor has dequeued the bundle
                    raise NotReceived("the rest of the body cannot be fetched: %s" % refused)
                self.sleep(refused.retry_after)
            except OSError:
                pass  # the hub cannot be reached
            failures = 0 if len(body) > before else failures + 1
            pause = 0.1 if failures == 0 else min(2 * pause, 5)
            if failures > 10:
                raise NotReceived("bundle %s broke off after %d of %d bytes" % (bundle_id, len(body), size))
        return bytes(body)

    def dequeue(self, bundle_id, lost=False):
        """Confirms a bundle. lost says whether the response to an earlier attempt was lost. Returns False if another
        process of the actor has dequeued the bundle."""
        try:
            self.call("DELETE", "/v1/dequeue/" + bundle_id).close()
        except Refused as refused:
            if refused.status not in (404, 410):
                raise
            # After a lost response, the earlier attempt dequeued the bundle. Otherwise another process did.
            return lost
        return True

    def consume(self, handle, is_stopped=lambda: False, log=print):
        """Passes each bundle to handle(id, headers, body) and dequeues the bundle when handle returns. If handle
        raises, the bundle is delivered again. So handle has to skip the events that it has already processed."""
        bundle_id, is_open, handled, lost, pause = None, False, None, False, 0.1
        while not is_stopped():
            try:
                if handled is None:
                    began = time.monotonic()
                    bundle_id = bundle_id or str(uuid.uuid4())  # after a lost response, the Peek is repeated with the same id
                    bundle, is_open = self.peek(None, wait=0) if is_open else self.peek(bundle_id), False
                    if bundle is None:
                        if time.monotonic() - began < 15:  # the hub is stopping, or the open bundle was dequeued
                            self.sleep(random.uniform(0.5, 1))
                        continue
                    bundle_id = bundle[0]
                    handle(*bundle)
                    handled, lost = bundle_id, False
                self.dequeue(handled, lost)
                bundle_id, handled, pause = None, None, 0.1
            except Exception as error:  # including errors of handle
                if isinstance(error, Refused) and error.status == 409 and handled is None:
                    # Another bundle is open, perhaps opened by a process that has ended. The next Peek returns it.
                    bundle_id, is_open = None, True
                    continue
                if isinstance(error, Refused) and error.status == 409:
                    handled = None  # the content was deleted and produced again since it was fetched: fetch it again
                elif isinstance(error, Refused) and not is_temporary(error):
                    raise
                lost = handled is not None and (not isinstance(error, Refused) or error.status >= 500 or lost)
                log("the attempt is repeated: %s" % error)
                self.sleep(pause * random.uniform(0.5, 1) + getattr(error, "retry_after", 0))
                pause = min(2 * pause, 60)


def read_into(body, response):
    """Reads the body of a response until its end, or until the connection breaks."""
    try:
        while True:
            chunk = response.read(1 << 16)
            if not chunk:
                return
            body += chunk
    except http.client.IncompleteRead as broken:
        body += broken.partial
    except OSError:
        pass  # the connection broke


def is_temporary(refused):
    """Reports whether the same request may succeed later."""
    return refused.status in (429, 502, 503, 504)
