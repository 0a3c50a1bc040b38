# Tests the recipe for Python against a running hub. Variables of the environment have the
# addresses of the hub, its bus and its exchange.
import json
import os
import threading
import urllib.error
import urllib.request

from azure.servicebus import ServiceBusClient
from azure.storage.blob import BlobServiceClient
from domain import answer_request, event_ids, receive_notice, send_event

ACTOR = "5790001330569"
IDS = ["2b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", "3b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c42"]
URL = os.environ["HUB_URL"]


def call(method, path):
    request = urllib.request.Request(URL + path, method=method, headers={"X-Actor-Id": ACTOR})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def alongside(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


def main():
    container = BlobServiceClient(os.environ["BLOB_URL"], credential=os.environ["BLOB_KEY"]).get_container_client("messagehub-exchange")
    verify = {"connection_verify": os.environ["BUS_CERT"]} if "BUS_CERT" in os.environ else {}
    with ServiceBusClient.from_connection_string(os.environ["BUS"], **verify) as bus:
        with bus.get_queue_sender("dataavailable-fifo") as sender:
            for i in IDS:
                send_event(sender, {"id": i, "recipient": ACTOR, "origin": "Charges", "contentType": "PriceList",
                                    "documentType": "D18", "supportsBundling": True, "weight": 1})

        def fail(request, ids):
            error = RuntimeError("not at night")
            error.reason = 1
            raise error

        failing = alongside(answer_request, bus, "charges", container, fail)
        assert call("GET", "/v1/peek?wait=20s")[0] == 503
        failing.join()

        made = []

        def make(request, ids):
            assert (request.MessageType, request.ResponseFormatRequested) == ("PriceList", "Json")
            made.extend(ids)
            return json.dumps(ids).encode()

        making = alongside(answer_request, bus, "charges", container, make)
        status, headers, body = call("GET", "/v1/peek?wait=20s")
        making.join()
        assert status == 200, (status, body)
        assert json.loads(body) == made == IDS[:len(made)] != []

        bundle = headers["MessageId"]
        assert call("DELETE", "/v1/dequeue/" + bundle)[0] == 200
        heard = []
        with bus.get_queue_receiver("charges-dequeue") as receiver:
            receive_notice(receiver, lambda i, actor, ids: heard.append((i, actor, event_ids(container.download_blob(ids).readall()))))
        assert heard == [(bundle + "_" + ACTOR, ACTOR, made)], heard
    print("the recipe for Python works")


main()
