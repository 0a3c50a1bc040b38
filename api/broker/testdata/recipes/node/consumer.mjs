// A consumer of the webhook broker in Node, without any package. The hub calls it with each message
// of its channel; it verifies the calls and passes the messages to a function.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const tolerance = 5 * 60; // seconds
const maxBody = 1 << 20; // bytes, the limit of a message

// RetryLater is what the function of a consumer throws to be called again after some seconds, and
// not before.
export class RetryLater extends Error {
  constructor(seconds, reason = "later") {
    super(reason);
    this.seconds = seconds;
  }
}

// keyOf returns the key by which calls to a consumer with a token are signed: the token itself if it
// is a secret of Standard Webhooks, otherwise its SHA-256. The libraries of Standard Webhooks take it
// as "whsec_" and its Base64.
function keyOf(token) {
  if (token.startsWith("whsec_")) return Buffer.from(token.slice("whsec_".length), "base64");
  return createHash("sha256").update(token).digest();
}

const digest = (text) => createHash("sha256").update(text).digest();
const isSame = (a, b) => timingSafeEqual(digest(a), digest(b));

// verify throws unless a call is from the hub: it carries the token, is signed with it, and is not
// old. headers are those of node:http, and body is a Buffer.
export function verify(token, headers, body, now = Date.now() / 1000) {
  if (!isSame(headers["x-broker-consumer-token"] ?? "", token)) throw new Error("another token");
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  if (!id || !(Math.abs(now - Number(timestamp)) <= tolerance)) throw new Error("an old call");
  const want = createHmac("sha256", keyOf(token)).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const signatures = (headers["webhook-signature"] ?? "").split(" ");
  if (!signatures.some((s) => isSame(s, `v1,${want}`))) throw new Error("no valid signature");
}

// createConsumer returns an HTTP server that passes messages to handle. The hub calls once more,
// later, if handle throws; it may also call twice with one message, with the same id.
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
    id: headers["webhook-id"], // the same in every attempt
    message: headers["x-broker-message-id"], // by which the hub has the message
    channel: headers["x-broker-channel-id"],
    priority: Number(headers["x-broker-message-priority"]),
    attempts: Number(headers["x-broker-message-attempt"]), // that failed before
    contentType: headers["content-type"],
    metadata: Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]])),
    payload, // a Buffer
  };
}
