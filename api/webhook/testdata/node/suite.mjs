// Receivers in Node that verify the calls of a hub, by the libraries of Standard Webhooks and Svix.
// For schemes that these libraries do not support, the receivers use node:crypto. MESSAGEHUB is the
// path of the hub's program, whose command certify calls the receivers as a hub does.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, createHmac, createPrivateKey, createPublicKey, timingSafeEqual, verify as verifySignature } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const libraries = { standardwebhooks: new StandardWebhook(secret), svix: new SvixWebhook(secret) };

// receive runs f with the URL of a receiver. The receiver responds 204, or 401 if verify throws.
// receive returns the received calls.
async function receive(verify, f) {
  const calls = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    try {
      for await (const part of request) parts.push(part);
    } catch {
      return; // the caller has closed the connection
    }
    const call = { body: Buffer.concat(parts).toString(), headers: { ...request.headers } };
    calls.push(call);
    try {
      verify(call.body, call.headers);
      response.writeHead(204).end();
    } catch {
      response.writeHead(401).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await f(`http://127.0.0.1:${server.address().port}/hook`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  return calls;
}

// certify runs the command certify, and returns the result of each check by its name.
async function certify(url, ...flags) {
  const program = spawn(process.env.MESSAGEHUB, [
    "certify", url, "--json", "--insecure-http", "--allow", "127.0.0.0/8", "--slow", "500ms", ...flags,
  ], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  program.stdout.on("data", (part) => (text += part));
  const [status] = await once(program, "close");
  const { results } = JSON.parse(text);
  return { status, results: new Map(results.map((r) => [r.check, r])) };
}

// passes asserts that a receiver passes all checks, and that the checks with these names were made.
async function passes(url, flags, ...names) {
  const { status, results } = await certify(url, ...flags);
  const failed = [...results.values()].filter((r) => r.outcome === "failed");
  assert.deepEqual(failed, []);
  assert.equal(status, 0);
  for (const name of names) assert.equal(results.get(name)?.outcome, "ok", name);
}

const refusals = ["refuses a call without a signature", "refuses a changed body", "refuses a signature by another secret", "refuses a call that is an hour old"];

for (const [name, library] of Object.entries(libraries)) {
  test(`${name} accepts the calls of the hub and refuses others`, async () => {
    const calls = await receive((body, headers) => library.verify(body, headers), async (url) => {
      await passes(url, ["--secret", secret], "accepts a call", "accepts one valid signature of several", "refuses a changed id", ...refusals);
    });
    const [{ body, headers }] = calls;
    library.verify(body, headers);
    assert.equal(JSON.parse(body).event.type, "messagehub.certify");
    const changes = {
      "webhook-id": (value) => value + "0",
      "webhook-timestamp": (value) => String(Number(value) + 1),
      "webhook-signature": (value) => value.replace(/^v1,./, (start) => (start === "v1,A" ? "v1,B" : "v1,A")),
    };
    for (const [header, change] of Object.entries(changes)) {
      assert.throws(() => library.verify(body, { ...headers, [header]: change(headers[header]) }), header);
      assert.throws(() => library.verify(body, { ...headers, [header]: undefined }), header);
    }
    for (let at = 0; at < body.length; at += 7) {
      const changed = body.slice(0, at) + (body[at] === "x" ? "y" : "x") + body.slice(at + 1);
      assert.throws(() => library.verify(changed, headers), `byte ${at}`);
    }
  });

  test(`${name} does not accept another secret`, async () => {
    const other = new library.constructor("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
    await receive((body, headers) => other.verify(body, headers), async (url) => {
      const { status, results } = await certify(url, "--secret", secret);
      assert.equal(status, 1);
      assert.equal(results.get("accepts a call").outcome, "failed");
    });
  });
}

test("a receiver that verifies nothing does not pass", async () => {
  await receive(() => {}, async (url) => {
    const { status, results } = await certify(url, "--secret", secret);
    assert.equal(status, 1);
    for (const name of refusals) assert.equal(results.get(name).outcome, "failed", name);
  });
});

const checkAge = (milliseconds) => {
  if (!(Math.abs(Date.now() - milliseconds) < 300_000)) throw new Error("too old");
};

test("node:crypto verifies signatures by a key pair (v1a)", async () => {
  const seed = Buffer.alloc(32, 7);
  const key = createPrivateKey({ key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]), format: "der", type: "pkcs8" });
  const publicKey = createPublicKey(key);
  await receive((body, headers) => {
    checkAge(Number(headers["webhook-timestamp"]) * 1000);
    const content = Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`);
    const isValid = headers["webhook-signature"].split(" ").map((s) => s.split(","))
      .some(([version, text]) => version === "v1a" && text && verifySignature(null, content, publicKey, Buffer.from(text, "base64")));
    if (!isValid) throw new Error("no valid signature");
  }, (url) => passes(url, ["--secret", `whsk_${seed.toString("base64")}`], "accepts a call", "refuses a changed id", ...refusals));
});

test("node:crypto verifies the Authorization header", async () => {
  await receive((body, headers) => {
    checkAge(Date.parse(headers.date));
    const digest = `SHA-256=${createHash("sha256").update(body).digest("base64")}`;
    const [, text] = /,signature="([^"]+)"$/.exec(headers.authorization);
    const want = createHmac("sha256", "a secret").update(`date: ${headers.date}\ndigest: ${headers.digest}`).digest();
    if (digest !== headers.digest || !timingSafeEqual(want, Buffer.from(text, "base64"))) throw new Error("not valid");
  }, (url) => passes(url, ["--hmac-key", "a secret"], "accepts a call", "refuses a changed body with its digest", ...refusals));
});
