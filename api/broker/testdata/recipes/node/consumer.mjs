// A consumer of the webhook broker in Node, without any package. The hub calls the consumer with each
// message of its channel. The consumer verifies the calls and passes the messages to a function.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const tolerance = 5 * 60; // seconds
const maxBody = 1 << 20; // bytes, the limit of a message

// A consumer's function throws RetryLater to make the hub call again, after the given seconds at the
// earliest.
export class RetryLater extends Error {
  constructor(seconds, reason = "later") {
    super(reason);
    this.seconds = seconds;
  }
}

// keyOf returns the key that signs calls to the consumer with this token. If the token is a secret of
// Standard Webhooks ("whsec_" and Base64), the key is the decoded secret. Otherwise it is the SHA-256
// of the token; libraries of Standard Webhooks need it as "whsec_" and its Base64.
function keyOf(token) {
  if (token.startsWith("whsec_")) return Buffer.from(token.slice("whsec_".length), "base64");
  return createHash("sha256").update(token).digest();
}

const digest = (text) => createHash("sha256").update(text).digest();
const isSame = (a, b) => timingSafeEqual(digest(a), digest(b));

// verify throws if a call is not from the hub: if it has another token, no valid signature, or an old
// timestamp. headers are the headers of a node:http request, and body is a Buffer.
export function verify(token, headers, body, now = Date.now() / 1000) {
  if (!isSame(headers["x-broker-consumer-token"] ?? "", token)) throw new Error("another token");
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  if (!id || !(Math.abs(now - Number(timestamp)) <= tolerance)) throw new Error("an old call");
  const want = createHmac("sha256", keyOf(token)).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const signatures = (headers["webhook-signature"] ?? "").split(" ");
  if (!signatures.some((s) => isSame(s, `v1,${want}`))) throw new Error("no valid signature");
}

// createConsumer returns an HTTP server that passes messages to handle. If handle throws, the hub calls
// again later. The hub may call twice with the same message and the same id.
export function createConsumer(token, handle) {
  return createServer(async (request, response) => {
    const answer = (status, headers) => response.writeHead(status, headers).end();
    let body;
    try {
      body = await read(request);
    } catch {
      return answer(413, { Connection: "close" });
    }
    try {
      verify(token, request.headers, body);
    } catch {
      return answer(401);
    }
    try {
      await handle(messageOf(request.headers, body));
      answer(204);
    } catch (error) {
      console.error("a message was not handled:", error.message);
      if (error instanceof RetryLater) return answer(503, { "Retry-After": String(Math.ceil(error.seconds)) });
      answer(500);
    }
  });
}

async function read(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    if ((size += part.length) > maxBody) throw new Error("a long body");
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function messageOf(headers, payload) {
  const names = (headers["x-broker-metadata-headers"] ?? "").split(",").map((name) => name.trim()).filter(Boolean);
  return {
    id: headers["webhook-id"], // id of the delivery, the same in every attempt
    message: headers["x-broker-message-id"], // id of the message in the hub
    channel: headers["x-broker-channel-id"],
    priority: Number(headers["x-broker-message-priority"]),
    attempts: Number(headers["x-broker-message-attempt"]), // number of failed attempts before this one
    contentType: headers["content-type"],
    metadata: Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]])),
    payload, // a Buffer
  };
}
