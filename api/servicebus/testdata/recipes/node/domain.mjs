// A domain in Node, with @azure/service-bus, @azure/storage-blob and protobufjs, which
// reads contract.proto without generated code.
import { createHash, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import protobuf from "protobufjs";

const contract = protobuf.loadSync(new URL("contract.proto", import.meta.url).pathname).root;
const encode = (type, message) => Buffer.from(contract.lookupType(type).encode(message).finish());
const decode = (type, body) => contract.lookupType(type).decode(body);

// properties returns the properties that messages of the original MessageHub have. The hub
// does not need them.
const properties = (type, correlation) => ({
  OperationTimestamp: new Date().toISOString().slice(0, 19) + "Z",
  OperationCorrelationId: correlation,
  MessageVersion: 1,
  MessageType: type,
  EventIdentification: randomUUID(),
});

// sendEvent announces data to the hub. Await it before the next event of the same
// recipient. If it fails, send the same event again: the hub stores an event id once.
export async function sendEvent(sender, event) {
  const body = Buffer.from(JSON.stringify(event));
  const messageId = createHash("sha256").update(event.recipient).update(body).digest("hex").slice(0, 32);
  await sender.sendMessages({
    body, messageId, sessionId: event.recipient, contentType: "application/json",
    applicationProperties: properties("DataAvailable", messageId),
  });
}

// answerRequest waits for a request of the hub and replies to it. Run several loops that
// call it. It throws a ServiceTimeout error if no request waits.
export async function answerRequest(bus, queue, container, produce) {
  const session = await bus.acceptNextSession(queue, { skipParsingBodyAsJson: true });
  try {
    const [message] = await session.receiveMessages(1, { maxWaitTimeInMs: 5000 });
    if (!message) return; // the request has expired
    const request = decode("DataBundleRequestContract", message.body);
    const reply = { RequestId: request.RequestId, RequestIdempotencyId: request.IdempotencyId };
    try {
      const list = await container.getBlobClient(request.DataAvailableNotificationReferenceId).downloadToBuffer();
      const content = await produce(request, eventIds(list)); // a stream, or text
      const blob = container.getBlockBlobClient(`${request.IdempotencyId}_data`);
      await blob.uploadStream(Readable.from(content)); // replaces an existing blob
      reply.Success = { contentUri: blob.url.split("?")[0] };
    } catch (error) {
      reply.Failure = { reason: error.reason ?? 15, failureDescription: String(error.message) }; // 0 not found, 1 not available, 15 internal error
    }
    const sender = bus.createSender(`${queue}-reply`);
    await sender.sendMessages({
      body: encode("DataBundleResponseContract", reply),
      messageId: request.RequestId, sessionId: request.RequestId, timeToLive: 30_000,
      applicationProperties: properties("DataBundleResponse", request.IdempotencyId),
    });
    await sender.close();
    await session.completeMessage(message); // only after the reply was sent
  } finally {
    await session.close();
  }
}

// receiveNotice waits for a notice. The message id is BUNDLE_ACTOR, and is the same if the
// notice is delivered again.
export async function receiveNotice(receiver, handle) {
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 60_000 });
  if (!message) return;
  const notice = decode("DequeueContract", message.body);
  await handle(message.messageId, notice.marketOperator, notice.DataAvailableNotificationReferenceId);
  await receiver.completeMessage(message); // if handle throws, the notice is delivered again when its lock has expired
}

// eventIds decodes a list of ids: 16 bytes each, with the bytes of the first three groups
// reversed.
export function eventIds(list) {
  return Array.from({ length: list.length / 16 }, (_, i) => {
    const hex = (from, to) => list.subarray(16 * i + from, 16 * i + to).toString("hex");
    const reversed = (from, to) => Buffer.from(list.subarray(16 * i + from, 16 * i + to)).reverse().toString("hex");
    return `${reversed(0, 4)}-${reversed(4, 6)}-${reversed(6, 8)}-${hex(8, 10)}-${hex(10, 16)}`;
  });
}
