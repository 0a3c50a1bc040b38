"""A producer of the webhook broker in Python, without any package."""

import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    """The hub refused a message."""

    def __init__(self, status, problem):
        super().__init__(f"{problem.get('title', 'refused')} ({status}): {problem.get('detail', '')}")
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args, **kwargs):
        return None  # follows no redirects, because requests contain tokens


class Producer:
    """Sends messages to a channel. budget limits the seconds in which a failed message is sent again."""

    def __init__(self, url, channel, channel_token, id, token, budget=60):
        self.url = f"{url}/broker/channel/{urllib.parse.quote(channel, safe='')}/broadcast"
        self.credentials = {"X-Broker-Channel-Token": channel_token, "X-Broker-Producer-ID": id, "X-Broker-Producer-Token": token}
        self.budget = budget
        self.opener = urllib.request.build_opener(_NoRedirects)

    def publish(self, payload, id, priority=0, content_type="application/json", metadata=None):
        """Send a message and return the hub's id of the stored message.

        After a temporary failure, the message is sent again with the same id: the hub stores an id
        once within 24 hours. So derive id from the subject of the message.
        """
        headers = {
            **(metadata or {}),
            **self.credentials,
            "Content-Type": content_type,
            "X-Broker-Message-ID": id,
            "X-Broker-Message-Priority": str(priority),
        }
        if metadata:
            headers["X-Broker-Metadata-Headers"] = ", ".join(metadata)
        end, pause = time.monotonic() + self.budget, 0.1
        while True:
            try:
                return self._send(headers, payload)
            except Refused as refused:
                if refused.status not in (429, 502, 503, 504):
                    raise
                failure, wait = refused, refused.retry_after
            except (OSError, http.client.HTTPException) as error:
                failure, wait = error, 0  # the hub may have stored the message
            wait += pause * random.uniform(0.5, 1.5)
            if time.monotonic() + wait > end:
                raise failure
            time.sleep(wait)
            pause = min(2 * pause, 5)

    def _send(self, headers, payload):
        request = urllib.request.Request(self.url, data=payload, headers=headers, method="POST")
        try:
            with self.opener.open(request, timeout=30) as response:
                return response.headers["Location"].rsplit("/", 1)[-1]
        except urllib.error.HTTPError as response:
            refused = Refused(response.code, _problem_of(response))
            retry_after = response.headers.get("Retry-After", "")
            refused.retry_after = int(retry_after) if retry_after.isdigit() else 0
            raise refused from None


def _problem_of(response):
    try:
        problem = json.load(response)
        return problem if isinstance(problem, dict) else {}
    except ValueError:
        return {}
