# A domain in Python, with azure-servicebus, azure-storage-blob and protobuf.
# Generate contract_pb2.py by: protoc --python_out=. contract.proto
import hashlib
import json
import uuid
from datetime import datetime, timedelta, timezone

import contract_pb2 as contract
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage


# properties returns the properties that messages of the original MessageHub have. The hub
# does not need them.
def properties(kind, correlation):
    return {
        "OperationTimestamp": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "OperationCorrelationId": correlation,
        "MessageVersion": 1,
        "MessageType": kind,
        "EventIdentification": str(uuid.uuid4()),
    }


# send_event announces data to the hub. Send the events of a recipient one after the
# other. If it fails, send the same event again: the hub stores an event id once.
def send_event(sender, event):
    body = json.dumps(event)
    message_id = hashlib.sha256((event["recipient"] + body).encode()).hexdigest()[:32]
    sender.send_messages(ServiceBusMessage(
        body, message_id=message_id, session_id=event["recipient"], content_type="application/json",
        application_properties=properties("DataAvailable", message_id)))


# answer_request waits for a request of the hub and replies to it. Call it in a loop, in
# several threads. It raises azure.servicebus.exceptions.OperationTimeoutError if no
# request waits.
def answer_request(bus, queue, container, produce):
    with bus.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION) as session:
        messages = session.receive_messages(max_message_count=1, max_wait_time=5)
        if not messages:
            return  # the request has expired
        request = contract.DataBundleRequestContract.FromString(b"".join(messages[0].body))
        reply = contract.DataBundleResponseContract(RequestId=request.RequestId, RequestIdempotencyId=request.IdempotencyId)
        try:
            ids = container.download_blob(request.DataAvailableNotificationReferenceId).readall()
            content = produce(request, event_ids(ids))  # bytes, or a file opened for reading
            blob = container.get_blob_client(request.IdempotencyId + "_data")
            blob.upload_blob(content, overwrite=True)
            reply.Success.contentUri = blob.url.split("?")[0]
        except Exception as error:  # 0 not found, 1 not available, 15 internal error
            reply.Failure.reason = getattr(error, "reason", 15)
            reply.Failure.failureDescription = str(error)
        with bus.get_queue_sender(queue + "-reply") as sender:
            sender.send_messages(ServiceBusMessage(
                reply.SerializeToString(), message_id=request.RequestId, session_id=request.RequestId,
                time_to_live=timedelta(seconds=30),
                application_properties=properties("DataBundleResponse", request.IdempotencyId)))
        session.complete_message(messages[0])  # only after the reply was sent


# receive_notice waits for a notice. The message id is BUNDLE_ACTOR, and is the same if the
# notice is delivered again.
def receive_notice(receiver, handle):
    for message in receiver.receive_messages(max_message_count=1, max_wait_time=60):
        notice = contract.DequeueContract.FromString(b"".join(message.body))
        handle(message.message_id, notice.marketOperator, notice.DataAvailableNotificationReferenceId)
        receiver.complete_message(message)  # if handle raises, the notice is delivered again when its lock has expired


# event_ids decodes a list of ids: 16 bytes each, with the bytes of the first three groups
# reversed.
def event_ids(ids):
    return [str(uuid.UUID(bytes_le=ids[i:i + 16])) for i in range(0, len(ids), 16)]
