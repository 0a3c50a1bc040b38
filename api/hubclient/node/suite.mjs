// The client for Node against a hub that runs for the test, and against servers that fail. MESSAGEHUB is the program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, request as sendRequest } from "node:http";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { BrokenBodyError, Client, NotOpenError, Problem } from "./index.js";

let hub, url;

before(async () => {
  hub = spawn(process.env.MESSAGEHUB, ["serve", "--in-memory", "--listen", "127.0.0.1:0", "--bus-listen=", "--blob-listen="], {
    env: { ...process.env, MESSAGEHUB_ADMIN_TOKEN: "a-token-of-the-operators" }, stdio: ["ignore", "pipe", "ignore"],
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
  hub.kill();
  await once(hub, "exit");
});

const event = (recipient, payload) => ({
  id: randomUUID(), recipient, origin: "TimeSeries", contentType: "measured-data", documentType: "D18", supportsBundling: true, weight: 1, payload,
});

// announce announces events for a new actor.
async function announce(...payloads) {
  const actor = randomUUID();
  const events = payloads.map((p) => event(actor, p));
  assert.deepEqual(await new Client({ url }).announce(events), { accepted: events.length, duplicates: 0 });
  return { actor, ids: events.map((e) => e.id) };
}

// consumed consumes until done returns true, and returns the ids of the events of each bundle.
async function consumed(client, actor, options, handle) {
  const stop = new AbortController();
  await client.consume(actor, (bundle) => handle(bundle, () => stop.abort()), { signal: stop.signal, ...options });
}

const idsOf = async (bundle) => (await bundle.json()).map((e) => e.id);

// serve runs a server with steps, each of which answers one request, and a client of it whose pauses are noted.
async function serve(t, ...steps) {
  const seen = [], pauses = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    const step = steps.shift();
    if (step) step(request, response);
    else response.writeHead(418).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
    assert.equal(steps.length, 0, "steps without a request");
  });
  let time = 0, ids = 0;
  const client = new Client({
    url: `http://127.0.0.1:${server.address().port}`, random: () => 0, now: () => time, newId: () => `bundle-${++ids}`,
    sleep: async (ms) => {
      time += ms;
      pauses.push(ms);
    },
  });
  return { client, seen, pauses };
}

const problem = (status, headers = {}) => (request, response) =>
  response.writeHead(status, { "Content-Type": "application/problem+json", ...headers }).end(JSON.stringify({
    type: "urn:messagehub:problem:x", title: "A problem", status, detail: "A detail.", instance: "urn:messagehub:request:R", errors: [{ pointer: "/0/id", detail: "no UUID" }],
  }));
const ok = (request, response) => response.end();
const noAnswer = (request, response) => response.destroy();
const body = JSON.stringify([{ id: "1" }, { id: "2" }]);
const bundle = (id, end = body.length, tag = '"t"') => (request, response) => {
  const start = request.headers.range ? Number(/\d+/.exec(request.headers.range)[0]) : 0;
  response.writeHead(start ? 206 : 200, {
    MessageId: id, ETag: tag, "Content-Length": body.length - start, ...(start && { "Content-Range": `bytes ${start}-${body.length - 1}/${body.length}` }),
  });
  response.write(body.slice(start, end), () => (end < body.length ? setImmediate(() => response.destroy()) : response.end()));
};

// through runs a proxy in front of the hub that cuts the answers to GET off after n bytes.
async function through(t, n) {
  let cuts = 0;
  const server = createServer((request, response) => {
    const onward = sendRequest(url + request.url, { method: request.method, headers: request.headers }, async (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      let left = request.method === "GET" ? n : Infinity;
      for await (const chunk of answer) {
        response.write(chunk.subarray(0, left));
        if ((left -= chunk.length) < 0) {
          cuts++;
          setImmediate(() => response.destroy());
          return;
        }
      }
      response.end();
    });
    request.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { client: new Client({ url: `http://127.0.0.1:${server.address().port}`, sleep: async () => {} }), cuts: () => cuts };
}

test("consume delivers all events in order, and stops by its signal", async () => {
  const { actor, ids } = await announce(...Array(2500).fill({ kwh: 1 }));
  const client = new Client({ url });
  const got = [];
  await consumed(client, actor, {}, async (b, stop) => {
    got.push(...(await idsOf(b)));
    if (got.length === ids.length) stop();
  });
  assert.deepEqual(got, ids);
  assert.deepEqual((await client.queues(actor)).map((q) => q.waiting), [0, 0, 0], "the last bundle is dequeued, too");
});

test("consume stops while it waits", async () => {
  const stop = new AbortController();
  const ended = new Client({ url }).consume(randomUUID(), () => {}, { signal: stop.signal });
  setImmediate(() => stop.abort());
  await ended;
});

test("consume delivers a bundle again after an error", async () => {
  const { actor, ids } = await announce(1, 2);
  const bundles = [], errors = [];
  await consumed(new Client({ url }), actor, { onError: (e) => errors.push(e.message) }, async (b, stop) => {
    bundles.push(b.id);
    if (bundles.length === 1) throw new Error("no room");
    assert.deepEqual(await idsOf(b), ids);
    stop();
  });
  assert.equal(bundles[0], bundles[1]);
  assert.deepEqual(errors, ["no room"]);
});

test("a download is resumed where it broke off", async (t) => {
  const { actor, ids } = await announce(...Array(400).fill("x".repeat(900)));
  const { client, cuts } = await through(t, 100_000);
  await consumed(client, actor, {}, async (b, stop) => {
    assert.deepEqual(await idsOf(b), ids);
    stop();
  });
  assert.ok(cuts() >= 3);
});

test("two that consume for one actor lose nothing", async () => {
  const { actor, ids } = await announce(...Array(50).fill(1));
  const client = new Client({ url });
  const stop = new AbortController();
  const seen = new Set();
  await Promise.all([1, 2].map(() => client.consume(actor, async (b) => {
    for (const id of await idsOf(b)) seen.add(id);
    if (seen.size === ids.length) stop.abort();
  }, { signal: stop.signal })));
  assert.equal(seen.size, ids.length);
});

test("a problem is decoded", async () => {
  const { actor } = await announce(1);
  const client = new Client({ url });
  const good = event(actor, 1);
  await assert.rejects(client.announce([good, { ...event(actor, 2), weight: -1 }]), (e) => e instanceof Problem && e.status === 400 && e.errors[0].pointer === "/1/weight");
  await client.announce([good]);
  await assert.rejects(client.announce([event(actor, 3), { ...good, weight: 2 }]), (e) => e.status === 409 && e.accepted === 1 && e.errors.length === 1);
  await assert.rejects(client.peek("not an actor"), (e) => e.type === "urn:messagehub:problem:invalid-actor" && !e.isTemporary);
  assert.equal(await client.peek(randomUUID()), undefined);
  await assert.rejects(client.dequeue(actor, randomUUID()), (e) => e instanceof NotOpenError && !e.mayBeDequeued);
});

test("the types of the routes are at hand", async () => {
  const { actor } = await announce(1);
  const { data } = await new Client({ url }).http.GET("/v1/queues", { params: { header: { "X-Actor-Id": actor } } });
  assert.equal(data.queues.find((q) => q.group === "timeseries").waiting, 1);
});

test("Retry-After is honoured, and a bundle that was handled is not handled again", async (t) => {
  for (const status of [429, 503]) {
    const { client, pauses } = await serve(t, problem(status, { "Retry-After": "30" }), bundle("bundle-1"), problem(status, { "Retry-After": "20" }), ok, problem(403));
    let handled = 0;
    await assert.rejects(client.consume("a", () => void handled++), (e) => e.status === 403);
    assert.equal(handled, 1);
    assert.deepEqual(pauses, [30_050, 20_050]);
  }
});

test("Retry-After as a date does not depend on the clock of this machine", async (t) => {
  const date = (s) => `Tue, 01 Jan 2019 00:00:0${s} GMT`;
  const { client, pauses } = await serve(t, problem(503, { "Retry-After": date(9), Date: date(0) }), (request, response) => response.writeHead(204).end());
  assert.equal(await client.peek("a"), undefined);
  assert.deepEqual(pauses, [9_050]);
});

test("the bundle that is open is taken", async (t) => {
  const { client, seen } = await serve(t, problem(409), bundle("other"), ok, problem(403));
  await assert.rejects(client.consume("a", () => {}), (e) => e.status === 403);
  assert.deepEqual(seen.slice(0, 3), ["GET /v1/peek?bundleId=bundle-1&wait=30000ms", "GET /v1/peek", "DELETE /v1/dequeue/other"]);
});

test("not found is success after a lost answer to dequeue only", async (t) => {
  const { client } = await serve(t, bundle("b"), noAnswer, problem(404), bundle("b"), problem(410), noAnswer, problem(404));
  await (await client.peek("a")).dequeue();
  await assert.rejects((await client.peek("a")).dequeue(), NotOpenError);
  await assert.rejects(client.dequeue("a", "b"), (e) => e.mayBeDequeued);
});

test("a body that changes or is gone is an error", async (t) => {
  const { client } = await serve(t, bundle("b", 5), bundle("b", body.length, '"u"'), bundle("b", 5), problem(410));
  await assert.rejects(client.peek("a").then((b) => b.text()), (e) => e instanceof BrokenBodyError && e.received === 5);
  await assert.rejects(client.peek("a").then((b) => b.text()), (e) => e.cause.status === 410);
});

test("a bundle whose body is not whole is not dequeued", async (t) => {
  const { client, seen } = await serve(t, bundle("bundle-1", 5), bundle("bundle-1", body.length, '"u"'), problem(403));
  await assert.rejects(client.consume("a", () => {}), (e) => e.status === 403);
  assert.ok(seen.every((s) => !s.startsWith("DELETE")));
});

test("a bundle whose content was made again is fetched again", async (t) => {
  const { client } = await serve(t, bundle("bundle-1"), problem(409), bundle("bundle-1"), ok, problem(403));
  const got = [];
  await assert.rejects(client.consume("a", (b) => void got.push(b.id)), (e) => e.status === 403);
  assert.deepEqual(got, ["bundle-1", "bundle-1"]);
});

test("a token is asked for with each request", async (t) => {
  const seen = [];
  const note = (request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(seen.length === 1 ? 503 : 204).end();
  };
  const { client } = await serve(t, note, note);
  client.options.token = async () => `token-${seen.length}`;
  await client.peek("a");
  assert.deepEqual(seen, ["Bearer token-0", "Bearer token-1"]);
});

test("consume gives up when its patience is exhausted", async (t) => {
  const later = problem(503, { "Retry-After": "60" });
  const { client, pauses } = await serve(t, later, later, later);
  await assert.rejects(client.consume("a", () => {}, { patience: 150_000 }), (e) => e.status === 503);
  assert.equal(pauses.length, 2);
});
