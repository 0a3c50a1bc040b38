"""A consumer of the webhook broker in Python, without any package.

The hub calls the consumer with each message of its channel. The consumer verifies the calls and
passes the messages to a function.
"""

import base64
import dataclasses
import hashlib
import hmac
import http.server
import logging
import math
import time

TOLERANCE = 5 * 60  # seconds
MAX_BODY = 1 << 20  # bytes, the limit of a message


class RetryLater(Exception):
    """Raised by a consumer's function to make the hub call again, after the given seconds at the earliest."""

    def __init__(self, seconds, reason="later"):
        super().__init__(reason)
        self.seconds = seconds


@dataclasses.dataclass
class Message:
    id: str  # id of the delivery, the same in every attempt
    message: str  # id of the message in the hub
    channel: str
    priority: int
    attempts: int  # number of failed attempts before this one
    content_type: str
    metadata: dict
    payload: bytes


def key_of(token):
    """Return the key that signs calls to the consumer with this token.

    If the token is a secret of Standard Webhooks ("whsec_" and Base64), the key is the decoded
    secret. Otherwise it is the SHA-256 of the token; libraries of Standard Webhooks need it as
    "whsec_" and its Base64.
    """
    if token.startswith("whsec_"):
        return base64.b64decode(token[len("whsec_") :])
    return hashlib.sha256(token.encode()).digest()


def verify(token, headers, body, now=None):
    """Raise ValueError if a call is not from the hub.

    A call from the hub has the token, a valid signature and a recent timestamp. headers.get has to
    ignore the case of names, as the headers of http.server do.
    """
    if not hmac.compare_digest(headers.get("X-Broker-Consumer-Token", "").encode(), token.encode()):
        raise ValueError("another token")
    call, timestamp = headers.get("Webhook-Id", ""), headers.get("Webhook-Timestamp", "")
    if not call or not timestamp.isascii() or not timestamp.isdigit():
        raise ValueError("no id, or no timestamp")
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE:
        raise ValueError("an old call")
    signed = f"{call}.{timestamp}.".encode() + body
    want = b"v1," + base64.b64encode(hmac.digest(key_of(token), signed, "sha256"))
    signatures = headers.get("Webhook-Signature", "").split()
    if not any(hmac.compare_digest(s.encode(), want) for s in signatures):
        raise ValueError("no valid signature")


def message_of(headers, payload):
    names = [name.strip() for name in headers.get("X-Broker-Metadata-Headers", "").split(",") if name.strip()]
    return Message(
        id=headers["Webhook-Id"],
        message=headers["X-Broker-Message-ID"],
        channel=headers["X-Broker-Channel-ID"],
        priority=int(headers["X-Broker-Message-Priority"]),
        attempts=int(headers["X-Broker-Message-Attempt"]),
        content_type=headers["Content-Type"],
        metadata={name: headers.get(name) for name in names},
        payload=payload,
    )


class Consumer(http.server.ThreadingHTTPServer):
    """An HTTP server that passes messages to handle.

    If handle raises, the hub calls again later. The hub may call twice with the same message and the
    same id. Several messages are handled at the same time, each in its own thread.
    """

    daemon_threads = True

    def __init__(self, address, token, handle):
        super().__init__(address, _Handler)
        self.token, self.handle = token, handle


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds, for a client that sends slowly

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            return self._answer(411, close=True)
        if not 0 <= length <= MAX_BODY:
            return self._answer(413, close=True)
        body = self.rfile.read(length)
        try:
            verify(self.server.token, self.headers, body)
        except ValueError:
            return self._answer(401)
        try:
            self.server.handle(message_of(self.headers, body))
        except RetryLater as later:
            return self._answer(503, retry_after=later.seconds)
        except Exception:
            logging.exception("a message was not handled")
            return self._answer(500)
        return self._answer(204)

    def _answer(self, status, retry_after=None, close=False):
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", str(math.ceil(retry_after)))
        if status != 204:
            self.send_header("Content-Length", "0")
        if close:
            self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *args):
        pass
