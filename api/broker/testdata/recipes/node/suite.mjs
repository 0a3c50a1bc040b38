// Tests the recipes for Node against a hub that the suite starts. MESSAGEHUB is the path of the hub's
// program. The hub creates the producer, the channel and the consumers when it starts.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { createConsumer, RetryLater, verify } from "./consumer.mjs";
import { Producer, Refused } from "./producer.mjs";

const tokens = { shop: "of-the-shop", prices: "of-the-channel", plain: "of-the-consumer", secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" };
const consumers = {}; // by name
let hub, url;

// A stand is a consumer that records its messages. A test can wait for them.
class Stand {
  constructor(token) {
    this.got = [];
    this.waiting = [];
    this.handle = () => {};
    this.server = createConsumer(token, async (message) => {
      this.got.push(message);
      this.waiting.splice(0).forEach((resolve) => resolve());
      await this.handle(message);
    });
  }

  async next() {
    while (this.got.length === 0) await new Promise((resolve) => this.waiting.push(resolve));
    return this.got.shift();
  }
}

before(async () => {
  const parties = [];
  for (const name of ["plain", "secret"]) {
    consumers[name] = new Stand(tokens[name]);
    consumers[name].server.listen(0, "127.0.0.1");
    await once(consumers[name].server, "listening");
    parties.push(`{channel: prices, id: ${name}, token: ${tokens[name]}, callback-url: 'http://127.0.0.1:${consumers[name].server.address().port}/hook'}`);
  }
  hub = spawn(process.env.MESSAGEHUB, ["serve", "--in-memory", "--listen", "127.0.0.1:0", "--bus-listen=", "--blob-listen="], {
    env: {
      ...process.env, MESSAGEHUB_ADMIN_TOKEN: "a-token-of-the-operators", MESSAGEHUB_PUSH_ALLOW: "127.0.0.0/8", MESSAGEHUB_PUSH_INSECURE_HTTP: "true",
      MESSAGEHUB_BROKER_RETRY_DELAY: "50ms", MESSAGEHUB_BROKER_PRODUCERS: `[{id: shop, token: ${tokens.shop}}]`,
      MESSAGEHUB_BROKER_CHANNELS: `[{id: prices, token: ${tokens.prices}}]`, MESSAGEHUB_BROKER_CONSUMERS: `[${parties.join(", ")}]`,
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  for await (const line of createInterface(hub.stdout)) {
    const found = /listens on (\S+) and/.exec(line);
    if (found) {
      url = found[1];
      break;
    }
  }
  hub.stdout.resume();
});

after(async () => {
  if (hub && hub.exitCode === null && hub.kill("SIGTERM")) await once(hub, "exit");
  for (const { server } of Object.values(consumers)) {
    server.close();
    server.closeAllConnections();
  }
});

const producer = (more) => new Producer({ url, channel: "prices", channelToken: tokens.prices, id: "shop", token: tokens.shop, ...more });

// both returns the next message of each consumer.
const both = async () => [await consumers.plain.next(), await consumers.secret.next()];

test("a message reaches each consumer as its producer sent it", async () => {
  const id = await producer().publish("ä;b\n", { id: "offer-1", priority: 7, contentType: "text/csv", metadata: { "X-Trace": "t-1" } });
  for (const got of await both()) {
    assert.equal(got.message, id);
    assert.equal(got.payload.toString(), "ä;b\n");
    assert.deepEqual([got.channel, got.priority, got.attempts, got.contentType], ["prices", 7, 0, "text/csv"]);
    assert.deepEqual(got.metadata, { "X-Trace": "t-1" });
  }
});

test("a message that is not handled comes again", async () => {
  const failures = [new Error("the disk is full"), new RetryLater(0)];
  consumers.plain.handle = () => {
    if (failures.length > 0) throw failures.shift();
  };
  await producer().publish("{}", { id: "offer-2" });
  const [first, second, third] = [await consumers.plain.next(), await consumers.plain.next(), await consumers.plain.next()];
  assert.deepEqual([first.attempts, second.attempts, third.attempts], [0, 1, 2]);
  assert.ok(first.id === second.id && second.id === third.id);
  await consumers.secret.next();
});

test("a message is stored once, whatever is lost on the way", async () => {
  let n = 0;
  const flaky = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { host, connection, ...headers } = request.headers;
    if (++n === 1) return request.socket.destroy(); // the hub stores nothing
    if (n === 2) return response.writeHead(503, { "Retry-After": "0" }).end();
    const answer = await fetch(url + request.url, { method: "POST", headers: { ...headers }, body: Buffer.concat(parts) });
    if (n === 3) return request.socket.destroy(); // the response is lost
    response.writeHead(answer.status, { Location: answer.headers.get("Location") ?? "" }).end();
  });
  flaky.listen(0, "127.0.0.1");
  await once(flaky, "listening");
  const by = producer({ url: `http://127.0.0.1:${flaky.address().port}` });
  const id = await by.publish('{"n":3}', { id: "offer-3" });
  flaky.close();
  flaky.closeAllConnections();
  assert.equal(n, 4);
  assert.equal(await producer().publish('{"n":3}', { id: "offer-3" }), id);
  for (const got of await both()) assert.equal(got.message, id);
  await producer().publish("{}", { id: "offer-4" });
  for (const got of await both()) assert.equal(got.payload.toString(), "{}", "the message before came once");
});

test("what the hub refuses is not sent again", async () => {
  await assert.rejects(producer().publish("{}", { id: "offer-3" }), (e) => e instanceof Refused && e.status === 409);
  await assert.rejects(producer({ token: "another" }).publish("{}", { id: "offer-5" }), (e) => e.status === 403 && !e.message.includes("another"));
  await assert.rejects(producer({ url: "http://127.0.0.1:1", budget: 0.2 }).publish("{}", { id: "offer-5" }));
});

test("a call that is not from the hub is refused", async () => {
  const calls = [];
  const listener = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    calls.push({ headers: request.headers, body: Buffer.concat(parts) });
    response.writeHead(204).end();
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const put = await fetch(`${url}/broker/channel/prices/consumer/late`, {
    method: "PUT", headers: { "X-Broker-Admin-Token": "a-token-of-the-operators" },
    body: new URLSearchParams({ token: tokens.plain, callbackUrl: `http://127.0.0.1:${listener.address().port}/` }),
  });
  assert.equal(put.status, 201);
  await producer().publish("paid", { id: "offer-6" });
  await both();
  while (calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  listener.close();
  listener.closeAllConnections();

  const [{ headers, body }] = calls;
  verify(tokens.plain, headers, body);
  const now = Date.now() / 1000;
  for (const [name, check] of Object.entries({
    "another token": () => verify("another", headers, body),
    "no token": () => verify(tokens.plain, { ...headers, "x-broker-consumer-token": undefined }, body),
    "another body": () => verify(tokens.plain, headers, Buffer.from("PAID")),
    "another id": () => verify(tokens.plain, { ...headers, "webhook-id": "x" }, body),
    "no signature": () => verify(tokens.plain, { ...headers, "webhook-signature": undefined }, body),
    "no timestamp": () => verify(tokens.plain, { ...headers, "webhook-timestamp": undefined }, body),
    "an old call": () => verify(tokens.plain, headers, body, now + 3600),
    "an early call": () => verify(tokens.plain, headers, body, now - 3600),
  })) assert.throws(check, Error, name);

  const { port } = consumers.plain.server.address();
  const stranger = await fetch(`http://127.0.0.1:${port}/hook`, { method: "POST", body: "x" });
  assert.equal(stranger.status, 401);
  const long = await fetch(`http://127.0.0.1:${port}/hook`, { method: "POST", body: "x".repeat((1 << 20) + 1) }).catch(() => ({ status: 413 }));
  assert.equal(long.status, 413);
});
