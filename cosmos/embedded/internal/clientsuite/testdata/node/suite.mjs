// Tests of the emulator with Microsoft's client for Node, which requests query
// plans, merges the results of partitions and sends bulk batches.
// COSMOS_ENDPOINT is the URL of the emulator, and COSMOS_KEY its key.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { BulkOperationType, ChangeFeedStartFrom, ConsistencyLevel, CosmosClient, PartitionKeyKind, PatchOperationType } from "@azure/cosmos";

const { COSMOS_ENDPOINT: endpoint, COSMOS_KEY: key } = process.env;
const client = new CosmosClient({ endpoint, key });
after(() => client.dispose());

let database; // of all tests; each has containers of its own
let spread; // 60 items over several physical partitions, for queries

const teams = ["ants", "bees", "cats"];
const items = [...Array(60).keys()].map((n) => ({
  id: `i${n}`,
  pk: `p${n % 12}`,
  n,
  team: teams[n % 3],
  half: Math.floor(n / 2),
  name: { first: `f${String(n).padStart(2, "0")}` },
  tags: n % 2 ? ["odd"] : ["even", "all"],
}));

async function container(id, more = {}, options = {}) {
  const { container } = await database.containers.create({ id, partitionKey: { paths: ["/pk"] }, ...more }, options);
  return container;
}

before(async () => {
  ({ database } = await client.databases.create({ id: "suite" }));
  spread = await container("spread", {}, { offerThroughput: 40000 });
  await Promise.all(items.map((item) => spread.items.create(item)));
});

const failsWith = (code, substatus) => (err) => {
  assert.equal(err.code, code, err.message);
  if (substatus !== undefined) assert.equal(err.substatus, substatus);
  return true;
};

async function all(query, options) {
  return (await spread.items.query(query, options).fetchAll()).resources;
}

async function pages(iterator) {
  const list = [];
  while (iterator.hasMoreResults()) {
    const { resources } = await iterator.fetchNext();
    if (resources?.length) list.push(resources);
  }
  return list;
}

const by = (f) => (a, b) => (f(a) < f(b) ? -1 : f(a) > f(b) ? 1 : 0);

// ---- databases, containers, throughput

test("databases and containers are created, read, listed, queried, replaced and deleted", async () => {
  const { database: other } = await client.databases.createIfNotExists({ id: "other" });
  assert.equal((await client.databases.createIfNotExists({ id: "other" })).statusCode, 200);
  await assert.rejects(client.databases.create({ id: "other" }), failsWith(409));
  const { container: c } = await other.containers.createIfNotExists({ id: "c", partitionKey: "/pk" });
  assert.equal((await other.containers.createIfNotExists({ id: "c", partitionKey: "/pk" })).statusCode, 200);
  const { resource } = await c.read();
  assert.deepEqual(resource.partitionKey.paths, ["/pk"]);
  await c.replace({ ...resource, defaultTtl: 100 });
  assert.equal((await c.read()).resource.defaultTtl, 100);
  assert.deepEqual((await other.containers.readAll().fetchAll()).resources.map((r) => r.id), ["c"]);
  assert.deepEqual((await client.databases.query({ query: "SELECT * FROM d WHERE d.id = @id", parameters: [{ name: "@id", value: "other" }] }).fetchAll()).resources.map((r) => r.id), ["other"]);
  await c.delete();
  await assert.rejects(c.read(), failsWith(404));
  await other.delete();
  await assert.rejects(other.read(), failsWith(404));
});

test("throughput is read and replaced, and offers are listed", async () => {
  const c = await container("offered", {}, { offerThroughput: 500 });
  const { resource, offer } = await c.readOffer();
  assert.equal(resource.content.offerThroughput, 500);
  resource.content.offerThroughput = 600;
  await offer.replace(resource);
  assert.equal((await c.readOffer()).resource.content.offerThroughput, 600);
  assert.ok((await client.offers.readAll().fetchAll()).resources.length >= 2);
  const scaled = await container("autoscaled", { maxThroughput: 4000 });
  assert.equal((await scaled.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 4000);
  assert.equal((await database.readOffer()).resource, undefined);
});

test("the account document has regions and consistency", async () => {
  const { resource } = await client.getDatabaseAccount();
  assert.equal(resource.consistencyPolicy, ConsistencyLevel.Session);
  assert.ok(resource.writableLocations.length > 0);
});

// ---- items

test("an item is created, read, replaced, upserted and deleted", async () => {
  const c = await container("crud");
  const created = await c.items.create({ id: "a", pk: "p", n: 1 });
  assert.equal(created.statusCode, 201);
  assert.ok(created.requestCharge > 0);
  assert.ok(created.headers["x-ms-session-token"]);
  assert.ok(created.activityId);
  await assert.rejects(c.items.create({ id: "a", pk: "p" }), failsWith(409));
  const item = c.item("a", "p");
  const read = await item.read();
  assert.equal(read.resource.n, 1);
  assert.equal(read.etag, created.etag);
  assert.equal(read.requestCharge, 1);
  assert.equal((await item.replace({ id: "a", pk: "p", n: 2 })).statusCode, 200);
  assert.equal((await c.items.upsert({ id: "a", pk: "p", n: 3 })).statusCode, 200);
  assert.equal((await c.items.upsert({ id: "b", pk: "p", n: 4 })).statusCode, 201);
  assert.equal((await item.read()).resource.n, 3);
  assert.equal((await item.delete()).statusCode, 204);
  const missing = await item.read(); // the client answers 404, it does not throw
  assert.equal(missing.statusCode, 404);
  assert.equal(missing.resource, undefined);
  await assert.rejects(item.delete(), failsWith(404));
  await assert.rejects(item.replace({ id: "a", pk: "p" }), failsWith(404));
});

test("an item without id gets one, and partition keys may have any type", async () => {
  const c = await container("keys");
  const { resource } = await c.items.create({ pk: "p" });
  assert.match(resource.id, /^[0-9a-f-]{36}$/);
  for (const pk of [1, 1.5, true, null, "ü/?#"]) {
    await c.items.create({ id: "x", pk });
    assert.equal((await c.item("x", pk).read()).resource.pk, pk);
  }
  await c.items.create({ id: "x" });
  assert.equal((await c.item("x", undefined).read()).resource.id, "x");
  assert.equal((await c.items.readAll().fetchAll()).resources.length, 7);
});

test("etags decide: 412 for a stale one, 304 for a known one", async () => {
  const c = await container("etags");
  const { etag } = await c.items.create({ id: "a", pk: "p", n: 1 });
  const item = c.item("a", "p");
  const known = await item.read({ accessCondition: { type: "IfNoneMatch", condition: etag } });
  assert.equal(known.statusCode, 304);
  const when = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
  const next = await item.replace({ id: "a", pk: "p", n: 2 }, when(etag));
  await assert.rejects(item.replace({ id: "a", pk: "p", n: 3 }, when(etag)), failsWith(412));
  await assert.rejects(c.items.upsert({ id: "a", pk: "p", n: 3 }, when(etag)), failsWith(412));
  await assert.rejects(item.patch([{ op: "set", path: "/n", value: 3 }], when(etag)), failsWith(412));
  await assert.rejects(item.delete(when(etag)), failsWith(412));
  assert.equal((await item.read()).resource.n, 2);
  await item.delete(when(next.etag));
});

test("one of many writers with the same etag succeeds", async () => {
  const c = await container("race");
  const { etag } = await c.items.create({ id: "a", pk: "p" });
  const tries = await Promise.allSettled([...Array(20).keys()].map((n) => c.item("a", "p").replace({ id: "a", pk: "p", n }, { accessCondition: { type: "IfMatch", condition: etag } })));
  assert.equal(tries.filter((t) => t.status === "fulfilled").length, 1);
  for (const t of tries.filter((t) => t.status === "rejected")) assert.equal(t.reason.code, 412);
});

test("a patch executes its operations if its condition holds", async () => {
  const c = await container("patches");
  await c.items.create({ id: "a", pk: "p", n: 1, list: [1], gone: true });
  const item = c.item("a", "p");
  const { resource } = await item.patch([
    { op: PatchOperationType.add, path: "/list/-", value: 2 },
    { op: PatchOperationType.set, path: "/name", value: "x" },
    { op: PatchOperationType.incr, path: "/n", value: 4 },
    { op: PatchOperationType.replace, path: "/list/0", value: 0 },
    { op: PatchOperationType.remove, path: "/gone" },
  ]);
  assert.deepEqual([resource.list, resource.name, resource.n, resource.gone], [[0, 2], "x", 5, undefined]);
  const operations = [{ op: "incr", path: "/n", value: 1 }];
  await assert.rejects(item.patch({ condition: "from c where c.n > 5", operations }), failsWith(412));
  assert.equal((await item.patch({ condition: "from c where c.n = 5", operations })).resource.n, 6);
});

test("time to live is set by a container and by an item", async () => {
  const c = await container("expiring", { defaultTtl: -1 });
  assert.equal((await c.read()).resource.defaultTtl, -1);
  await c.items.create({ id: "stays", pk: "p" });
  const { resource } = await c.items.create({ id: "goes", pk: "p", ttl: 1 });
  // _ts has whole seconds: the item must be gone within two seconds.
  const end = Date.now() + 20_000;
  let answer;
  do {
    answer = await c.item("goes", "p").read();
  } while (answer.statusCode === 200 && Date.now() < end);
  assert.equal(answer.statusCode, 404);
  assert.ok(Date.now() / 1000 >= resource._ts + 1);
  assert.equal((await c.items.readAll().fetchAll()).resources.length, 1);
  await assert.rejects(c.items.create({ id: "b", pk: "p", ttl: 0 }), failsWith(400));
});

test("errors have the fields that clients use", async () => {
  await assert.rejects(database.container("nowhere").items.create({ id: "a" }), failsWith(404));
  const gone = await container("gone");
  await gone.items.create({ id: "a", pk: "p" });
  await gone.delete();
  const answer = await gone.item("a", "p").read();
  assert.deepEqual([answer.statusCode, answer.substatus], [404, 1003]);
  await assert.rejects(spread.items.create({ id: "big", pk: "p", text: "x".repeat(2 << 20) }), failsWith(413));
  await assert.rejects(all("SELECT nonsense"), failsWith(400));
  await assert.rejects(all("SELECT * FROM c", { partitionKey: "p1", continuationToken: "nonsense" }), failsWith(400));
  const stranger = new CosmosClient({ endpoint, key: Buffer.from("another key").toString("base64") });
  await assert.rejects(stranger.databases.readAll().fetchAll(), failsWith(401));
  stranger.dispose();
});

test("a session reads its own writes, also at weaker levels", async () => {
  const c = await container("sessions");
  const { headers } = await c.items.create({ id: "a", pk: "p", n: 0 });
  for (let n = 1; n <= 20; n++) {
    await c.item("a", "p").replace({ id: "a", pk: "p", n });
    assert.equal((await c.item("a", "p").read()).resource.n, n);
  }
  assert.equal((await c.item("a", "p").read({ sessionToken: headers["x-ms-session-token"] })).resource.n, 20);
  const weak = new CosmosClient({ endpoint, key, consistencyLevel: ConsistencyLevel.Eventual });
  assert.equal((await weak.database("suite").container("sessions").item("a", "p").read()).resource.n, 20);
  weak.dispose();
  const strong = new CosmosClient({ endpoint, key, consistencyLevel: ConsistencyLevel.Strong });
  await assert.rejects(strong.database("suite").container("sessions").item("a", "p").read(), failsWith(400));
  strong.dispose();
});

test("the client keeps the session token of each container", async () => {
  const c = await container("tokens");
  const sent = [];
  const observed = new CosmosClient({
    endpoint, key, consistencyLevel: ConsistencyLevel.Session, // without it, the client sends no token
    plugins: [{ on: "request", plugin: (request, _, next) => (sent.push(request.headers["x-ms-session-token"]), next(request)) }],
  });
  const mine = observed.database("suite").container("tokens");
  const { headers } = await mine.items.create({ id: "a", pk: "p" });
  sent.length = 0;
  await mine.item("a", "p").read();
  assert.equal(sent.at(-1), headers["x-ms-session-token"]);
  await c.delete();
  observed.dispose();
});

test("links with resource ids are served", async () => {
  const c = await container("links");
  const { resource } = await c.items.create({ id: "a", pk: "p" });
  const { resource: properties } = await c.read();
  for (const [link, rid, kind] of [[properties._self, properties._rid, "colls"], [resource._self, resource._rid, "docs"]]) {
    const date = new Date().toUTCString();
    const text = `get\n${kind}\n${rid.toLowerCase()}\n${date.toLowerCase()}\n\n`;
    const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
    const answer = await fetch(new URL(link, endpoint), {
      headers: {
        "authorization": encodeURIComponent(`type=master&ver=1.0&sig=${signature}`), "x-ms-date": date, "x-ms-version": "2020-11-05",
        "x-ms-documentdb-partitionkey": '["p"]', "x-ms-cosmos-supported-serialization-formats": "JsonText,CosmosBinary",
      },
    });
    assert.equal(answer.status, 200);
    assert.equal((await answer.json())._rid, rid);
  }
});

// ---- batches and bulk

test("a transactional batch is executed completely", async () => {
  const c = await container("batches");
  await c.items.create({ id: "old", pk: "p", n: 1 });
  const { result, code } = await c.items.batch(
    [
      { operationType: BulkOperationType.Create, resourceBody: { id: "a", pk: "p" } },
      { operationType: BulkOperationType.Upsert, resourceBody: { id: "b", pk: "p" } },
      { operationType: BulkOperationType.Patch, id: "old", resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
      { operationType: BulkOperationType.Read, id: "old" },
      { operationType: BulkOperationType.Replace, id: "a", resourceBody: { id: "a", pk: "p", n: 5 } },
      { operationType: BulkOperationType.Delete, id: "b" },
    ],
    "p",
  );
  assert.equal(code, 200);
  assert.deepEqual(result.map((r) => r.statusCode), [201, 201, 200, 200, 200, 204]);
  assert.equal(result[3].resourceBody.n, 2);
  assert.ok(result.every((r) => r.requestCharge > 0));
});

test("a transactional batch with a failing operation has no effect", async () => {
  const c = await container("failing");
  const { result, code } = await c.items.batch(
    [
      { operationType: BulkOperationType.Create, resourceBody: { id: "a", pk: "p" } },
      { operationType: BulkOperationType.Delete, id: "missing" },
      { operationType: BulkOperationType.Create, resourceBody: { id: "b", pk: "p" } },
    ],
    "p",
  );
  assert.equal(code, 207);
  assert.deepEqual(result.map((r) => r.statusCode), [424, 404, 424]);
  assert.deepEqual((await c.items.readAll().fetchAll()).resources, []);
});

const upserts = (count) => [...Array(count).keys()].map((n) => ({ operationType: BulkOperationType.Upsert, partitionKey: `p${n % 20}`, resourceBody: { id: `i${n}`, pk: `p${n % 20}`, n } }));

test("bulk operations reach every partition independently", async () => {
  const c = await container("bulk", {}, { offerThroughput: 30000 });
  const results = await c.items.executeBulkOperations(upserts(250));
  assert.equal(results.length, 250);
  results.forEach((r, n) => assert.equal(r.response?.statusCode, 201, `${n}: ${r.error?.message}`));
  assert.deepEqual((await c.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources, [250]);
  const mixed = await c.items.executeBulkOperations([
    { operationType: BulkOperationType.Create, partitionKey: "p1", resourceBody: { id: "i1", pk: "p1" } },
    { operationType: BulkOperationType.Read, partitionKey: "p2", id: "i2" },
    { operationType: BulkOperationType.Replace, partitionKey: "p3", id: "i3", resourceBody: { id: "i3", pk: "p3", n: -3 } },
    { operationType: BulkOperationType.Patch, partitionKey: "p4", id: "i4", resourceBody: { operations: [{ op: "incr", path: "/n", value: 100 }] } },
    { operationType: BulkOperationType.Delete, partitionKey: "p5", id: "i5" },
    { operationType: BulkOperationType.Delete, partitionKey: "p5", id: "missing" },
    { operationType: BulkOperationType.Replace, partitionKey: "p6", id: "i6", resourceBody: { id: "i6", pk: "p6" }, ifMatch: '"stale"' },
  ]);
  assert.deepEqual(mixed.map((r) => r.response?.statusCode ?? r.error?.code), [409, 200, 200, 200, 204, 404, 412]);
  assert.equal(mixed[1].response.resourceBody.n, 2);
  assert.equal((await c.item("i4", "p4").read()).resource.n, 104);
});

test("the older bulk call works, too", async () => {
  const c = await container("oldbulk", {}, { offerThroughput: 30000 });
  const operations = upserts(150);
  const results = await c.items.bulk(operations);
  assert.ok(results.every((r) => r.statusCode === 201), JSON.stringify(results[0]));
  const after = await c.items.bulk([{ operationType: BulkOperationType.Delete, id: "i0", partitionKey: "p0" }, { operationType: BulkOperationType.Delete, id: "i0", partitionKey: "p0" }], { continueOnError: true });
  assert.deepEqual(after.map((r) => r.statusCode), [204, 404]);
});

// ---- queries

test("a query within one partition key supports the whole language", async () => {
  const scoped = (query, parameters) => all({ query, parameters }, { partitionKey: "p3" });
  const mine = items.filter((i) => i.pk === "p3");
  assert.deepEqual((await scoped("SELECT * FROM c WHERE c.n > @n", [{ name: "@n", value: 20 }])).map((r) => r.n).sort(by((n) => n)), [27, 39, 51]);
  assert.deepEqual(await scoped("SELECT VALUE c.n FROM c ORDER BY c.n DESC"), mine.map((i) => i.n).reverse());
  assert.deepEqual(await scoped("SELECT VALUE SUM(c.n) FROM c"), [mine.reduce((s, i) => s + i.n, 0)]);
  assert.deepEqual(await scoped("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.n"), ["i3", "i15"]);
  assert.deepEqual(await scoped("SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 1 LIMIT 2"), ["i15", "i27"]);
  assert.deepEqual(await all("SELECT VALUE c.n FROM c WHERE c.pk = 'p3' ORDER BY c.n DESC"), mine.map((i) => i.n).reverse());
  assert.deepEqual(await all("SELECT VALUE c.n FROM c WHERE c.pk = 'p3' ORDER BY c.n DESC OFFSET 1 LIMIT 2", { forceQueryPlan: true }), [39, 27]);
});

test("the container has several physical partitions, and a query reaches all of them", async () => {
  const { resources } = await spread.readPartitionKeyRanges().fetchAll();
  assert.equal(resources.length, 4);
  for (const options of [{}, { maxItemCount: 7 }, { forceQueryPlan: true }, { forceQueryPlan: true, maxItemCount: 7, maxDegreeOfParallelism: 2 }]) {
    assert.deepEqual((await all("SELECT VALUE c.n FROM c", options)).sort(by((n) => n)), items.map((i) => i.n));
  }
  assert.deepEqual((await all("SELECT VALUE {id: c.id, tag: t} FROM c JOIN t IN c.tags WHERE c.n < 3", { forceQueryPlan: true, maxItemCount: 2 })).sort(by((r) => r.id + r.tag)), [
    { id: "i0", tag: "all" }, { id: "i0", tag: "even" }, { id: "i1", tag: "odd" }, { id: "i2", tag: "all" }, { id: "i2", tag: "even" },
  ]);
});

test("ORDER BY merges the sorted results of partitions", async () => {
  const ns = items.map((i) => i.n);
  for (const maxItemCount of [undefined, 1, 7, 100]) {
    assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n", { maxItemCount }), ns);
    assert.deepEqual((await all("SELECT * FROM c WHERE c.n >= 10 ORDER BY c.n DESC", { maxItemCount })).map((r) => r.n), ns.slice(10).reverse());
    assert.deepEqual(await all("SELECT c.id, c.name.first AS f FROM c ORDER BY c.name.first DESC", { maxItemCount }), items.map((i) => ({ id: i.id, f: i.name.first })).reverse());
  }
  assert.deepEqual(await all({ query: "SELECT VALUE c.n FROM c WHERE c.team = @team ORDER BY c.name.first", parameters: [{ name: "@team", value: "bees" }] }), ns.filter((n) => n % 3 === 1));
  assert.deepEqual(await all("SELECT VALUE c.none FROM c ORDER BY c.n"), []);
  assert.deepEqual((await all("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n < 4 ORDER BY c.n", { maxItemCount: 2 })).length, 6);
});

test("ORDER BY two paths uses a composite index", async () => {
  const compositeIndexes = [[{ path: "/team", order: "ascending" }, { path: "/n", order: "descending" }]];
  const c = await container("composite", { indexingPolicy: { includedPaths: [{ path: "/*" }], compositeIndexes } }, { offerThroughput: 20000 });
  await Promise.all(items.map((i) => c.items.create(i)));
  const want = [...items].sort(by((i) => i.team + String(99 - i.n))).map((i) => i.id);
  assert.deepEqual((await c.items.query("SELECT VALUE c.id FROM c ORDER BY c.team ASC, c.n DESC", { maxItemCount: 9 }).fetchAll()).resources, want);
  await assert.rejects(spread.items.query("SELECT VALUE c.id FROM c ORDER BY c.team ASC, c.n DESC").fetchAll(), failsWith(400));
});

test("aggregates of partitions are combined", async () => {
  const one = async (query, want) => assert.deepEqual(await all(query), want, query);
  await one("SELECT VALUE COUNT(1) FROM c", [60]);
  await one("SELECT VALUE SUM(c.n) FROM c", [1770]);
  await one("SELECT VALUE MIN(c.n) FROM c WHERE c.n > 4", [5]);
  await one("SELECT VALUE MAX(c.name.first) FROM c", ["f59"]);
  await one("SELECT VALUE AVG(c.n) FROM c", [29.5]);
  await one("SELECT VALUE COUNT(1) FROM c WHERE c.n = 7", [1]);
  await one("SELECT VALUE COUNT(1) FROM c WHERE c.n = -1", [0]);
  await one("SELECT VALUE MAX(c.n) FROM c WHERE c.n = -1", []);
  await one("SELECT VALUE AVG(c.n) FROM c WHERE c.n < 4", [1.5]);
  await one("SELECT VALUE COUNT(t) FROM c JOIN t IN c.tags", [90]);
  await one("SELECT COUNT(1) AS count, MAX(c.n) AS most, AVG(c.n) mean FROM c", [{ count: 60, most: 59, mean: 29.5 }]);
  await one("SELECT COUNT(1), SUM(c.n) FROM c WHERE c.n < 3", [{ $1: 3, $2: 3 }]);
  await one("SELECT VALUE { count: COUNT(1), sum: SUM(c.n) } FROM c", [{ count: 60, sum: 1770 }]);
  await one("SELECT VALUE COUNT(1) FROM c ORDER BY c.n", [60]);
  await one("SELECT COUNT(1) AS 'how many' FROM c", [{ "how many": 60 }]);
});

test("GROUP BY combines the groups of partitions", async () => {
  const groups = async (query, want) => assert.deepEqual((await all(query)).sort(by((r) => JSON.stringify(r))), want, query);
  await groups("SELECT c.team, COUNT(1) AS count, SUM(c.n) AS sum, MIN(c.n) AS least, AVG(c.n) AS mean FROM c GROUP BY c.team", [
    { team: "ants", count: 20, sum: 570, least: 0, mean: 28.5 },
    { team: "bees", count: 20, sum: 590, least: 1, mean: 29.5 },
    { team: "cats", count: 20, sum: 610, least: 2, mean: 30.5 },
  ]);
  await groups("SELECT VALUE c.team FROM c GROUP BY c.team", teams);
  await groups("SELECT VALUE COUNT(1) FROM c GROUP BY c.team", [20, 20, 20]);
  await groups("SELECT UPPER(c.team) AS t, c.n % 2 AS odd, MAX(c.n) AS m FROM c WHERE c.team != 'cats' GROUP BY UPPER(c.team), c.n % 2", [
    { t: "ANTS", odd: 0, m: 54 }, { t: "ANTS", odd: 1, m: 57 }, { t: "BEES", odd: 0, m: 58 }, { t: "BEES", odd: 1, m: 55 },
  ]);
  assert.equal((await all("SELECT c.half, COUNT(1) AS count FROM c GROUP BY c.half OFFSET 5 LIMIT 10")).length, 10);
});

test("DISTINCT returns each result once", async () => {
  assert.deepEqual((await all("SELECT DISTINCT VALUE c.team FROM c")).sort(), teams);
  assert.deepEqual((await all("SELECT DISTINCT c.team FROM c")).map((r) => r.team).sort(), teams);
  assert.deepEqual(await all("SELECT DISTINCT VALUE c.team FROM c ORDER BY c.team DESC"), [...teams].reverse());
  assert.deepEqual(await all("SELECT DISTINCT TOP 4 c.half FROM c ORDER BY c.half"), [0, 1, 2, 3].map((half) => ({ half }))); // the client drops a bare 0
  assert.deepEqual((await all("SELECT DISTINCT c.team, c.half FROM c ORDER BY c.half")).length, 60);
  assert.deepEqual((await all("SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags")).sort(), ["all", "even", "odd"]);
  assert.equal((await all("SELECT DISTINCT TOP 2 VALUE c.team FROM c")).length, 2);
});

test("TOP, OFFSET and LIMIT apply to the combined results", async () => {
  for (const maxItemCount of [undefined, 1, 3]) {
    assert.deepEqual(await all("SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC", { maxItemCount }), [59, 58, 57, 56, 55]);
    assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 5", { maxItemCount }), [10, 11, 12, 13, 14]);
    assert.equal((await all({ query: "SELECT TOP @top * FROM c", parameters: [{ name: "@top", value: 13 }] }, { maxItemCount })).length, 13);
    assert.equal((await all("SELECT * FROM c OFFSET 50 LIMIT 20", { maxItemCount })).length, 10);
    assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 60 LIMIT 5", { maxItemCount }), []);
  }
});

test("queries that cannot be combined are refused", async () => {
  await assert.rejects(all("SELECT VALUE COUNT(1) + 1 FROM c"), failsWith(400));
  await assert.rejects(all("SELECT MAX(c.n) - MIN(c.n) AS width FROM c GROUP BY c.team"), failsWith(400));
});

test("queries continue from continuation tokens", async () => {
  const got = [];
  let continuationToken;
  do {
    const page = await spread.items.query("SELECT VALUE c.n FROM c", { maxItemCount: 8, continuationToken }).fetchNext();
    got.push(...page.resources);
    assert.ok(page.resources.length <= 8);
    assert.ok(page.requestCharge > 0);
    continuationToken = page.continuationToken;
  } while (continuationToken);
  assert.deepEqual(got.sort(by((n) => n)), items.map((i) => i.n));
  assert.ok((await pages(spread.items.query("SELECT * FROM c WHERE c.pk = 'p1'", { maxItemCount: 2 }))).length >= 3);
});

test("ordered queries continue from continuation tokens in another iterator", async () => {
  for (const [query, want] of [
    ["SELECT VALUE c.n FROM c ORDER BY c.n DESC", items.map((i) => i.n).reverse()],
    ["SELECT VALUE c.n FROM c ORDER BY c.team", null],
    ["SELECT VALUE c.n FROM c", null],
    ["SELECT TOP 30 VALUE c.n FROM c ORDER BY c.n", items.map((i) => i.n).slice(0, 30)],
    ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 7 LIMIT 30", items.map((i) => i.n).slice(7, 37)],
  ]) {
    const got = [];
    let continuationToken;
    do {
      const page = await spread.items.query(query, { maxItemCount: 7, continuationToken, enableQueryControl: true }).fetchNext();
      got.push(...(page.resources ?? []));
      continuationToken = page.continuationToken;
      assert.ok(got.length <= 60, query);
      // The client still returns tokens after a limit is reached.
    } while (continuationToken && JSON.parse(continuationToken).limit !== 0);
    if (want) assert.deepEqual(got, want, query);
    else assert.deepEqual([...got].sort(by((n) => n)), items.map((i) => i.n), query);
  }
});

// If a partition splits while the client reads the results of a query, the client
// repeats requests to the old partition. A client that starts from a token finds
// the new partitions, but only for ordered queries; others may return duplicates.
test("ordered queries and change feeds continue after physical partitions split", async () => {
  const c = await container("splitting", {}, { offerThroughput: 20000 });
  await Promise.all(items.map((item) => c.items.create(item)));
  const ordered = "SELECT VALUE c.n FROM c ORDER BY c.n";
  const options = { maxItemCount: 4, enableQueryControl: true };
  const first = await c.items.query(ordered, options).fetchNext();
  const feed = c.items.getChangeFeedIterator({ maxItemCount: 5, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  const changed = [...(await feed.readNext()).result];

  const { resource, offer } = await c.readOffer();
  resource.content.offerThroughput = 50000;
  await offer.replace(resource);
  assert.equal((await c.readPartitionKeyRanges().fetchAll()).resources.length, 5);

  const all = items.map((i) => i.n);
  const fresh = new CosmosClient({ endpoint, key });
  const got = [...first.resources];
  for (let { continuationToken } = first; continuationToken; ) {
    const page = await fresh.database("suite").container("splitting").items.query(ordered, { ...options, continuationToken }).fetchNext();
    got.push(...(page.resources ?? []));
    assert.ok(got.length <= 60);
    ({ continuationToken } = page);
  }
  assert.deepEqual(got, all);
  fresh.dispose();
  for (let quiet = 0; quiet < 8; ) {
    const page = await feed.readNext();
    quiet = page.statusCode === 304 ? quiet + 1 : 0;
    if (page.statusCode === 200) changed.push(...page.result);
  }
  assert.deepEqual(changed.map((i) => i.n).sort(by((n) => n)), all);
});

test("query metrics and charges are returned", async () => {
  const page = await spread.items.query("SELECT * FROM c WHERE c.n < 30", { populateQueryMetrics: true, partitionKey: "p1" }).fetchNext();
  assert.ok(page.requestCharge > 2);
  assert.equal(page.queryMetrics["0"].outputDocumentCount, 3);
  const whole = await spread.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
  assert.ok(whole.requestCharge > 4 * 2, `${whole.requestCharge}`);
});

test("many items are read at once by id and key", async () => {
  const wanted = items.filter((i) => i.n % 7 === 0);
  const query = "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id)";
  assert.deepEqual((await all({ query, parameters: [{ name: "@ids", value: wanted.map((i) => i.id) }] })).sort(), wanted.map((i) => i.id).sort());
  const reads = await spread.items.executeBulkOperations(wanted.map((i) => ({ operationType: BulkOperationType.Read, id: i.id, partitionKey: i.pk })));
  assert.deepEqual(reads.map((r) => r.response?.resourceBody?.n), wanted.map((i) => i.n));
});

// ---- change feed

async function changes(c, options) {
  const got = [];
  const iterator = c.items.getChangeFeedIterator(options);
  let quiet = 0; // a whole container is read range by range: 304 of one is not the end
  let token;
  while (quiet < 5) {
    const page = await iterator.readNext();
    quiet = page.statusCode === 304 ? quiet + 1 : 0;
    if (page.statusCode !== 304) got.push(...page.result);
    token = page.continuationToken;
  }
  return { got, token };
}

test("the change feed continues with the latest version of every item", async () => {
  const c = await container("feed", {}, { offerThroughput: 30000 });
  await c.items.executeBulkOperations(upserts(60));
  const whole = await changes(c, { maxItemCount: 10, changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  assert.deepEqual(whole.got.map((i) => i.n).sort(by((n) => n)), [...Array(60).keys()]);
  await c.items.upsert({ id: "i7", pk: "p7", n: 700 });
  const later = await changes(c, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(whole.token) });
  assert.deepEqual(later.got.map((i) => i.n), [700]);
  const key = await changes(c, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning("p7") });
  assert.deepEqual(key.got.map((i) => i.n).sort(by((n) => n)), [27, 47, 700]);
  const [first] = await c.getFeedRanges();
  const part = await changes(c, { changeFeedStartFrom: ChangeFeedStartFrom.Beginning(first) });
  assert.ok(part.got.length > 0 && part.got.length < 60);
  const now = await changes(c, { changeFeedStartFrom: ChangeFeedStartFrom.Now() });
  assert.deepEqual(now.got, []);
});

// ---- hierarchical partition keys

test("a hierarchical key addresses an item and, by its first parts, several", async () => {
  const partitionKey = { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: 2 };
  const { container: c } = await database.containers.create({ id: "levels", partitionKey }, { offerThroughput: 20000 });
  for (let n = 0; n < 24; n++) await c.items.create({ id: `i${n}`, tenant: `t${n % 3}`, user: `u${n % 4}`, n });
  assert.equal((await c.item("i5", ["t2", "u1"]).read()).resource.n, 5);
  const of = async (query, options) => (await c.items.query(query, options).fetchAll()).resources;
  assert.deepEqual(await of("SELECT VALUE c.n FROM c ORDER BY c.n", { partitionKey: ["t2", "u1"] }), [5, 17]);
  const mine = [1, 4, 7, 10, 13, 16, 19, 22];
  assert.deepEqual((await of("SELECT VALUE c.n FROM c WHERE c.tenant = 't1'")).sort(by((n) => n)), mine);
  assert.deepEqual(await of("SELECT VALUE c.n FROM c WHERE c.tenant = 't1' ORDER BY c.n"), mine);
  assert.deepEqual(await of("SELECT VALUE COUNT(1) FROM c WHERE c.tenant = 't1'"), [8]);
  assert.deepEqual((await of("SELECT VALUE c.n FROM c", { partitionKey: ["t1"] })).sort(by((n) => n)), mine);
  const bulk = await c.items.executeBulkOperations([{ operationType: BulkOperationType.Read, id: "i5", partitionKey: ["t2", "u1"] }]);
  assert.equal(bulk[0].response?.resourceBody?.n, 5);
  const { code } = await c.items.batch([{ operationType: BulkOperationType.Create, resourceBody: { id: "x", tenant: "t1", user: "u1" } }], ["t1", "u1"]);
  assert.equal(code, 200);
});

// ---- unsupported features

test("stored procedures, triggers, functions and users are refused", async () => {
  const c = await container("refused");
  await assert.rejects(c.scripts.storedProcedures.create({ id: "s", body: "function() {}" }), failsWith(400));
  await assert.rejects(c.scripts.triggers.create({ id: "t", body: "function() {}", triggerType: "Pre", triggerOperation: "All" }), failsWith(400));
  await assert.rejects(c.scripts.userDefinedFunctions.create({ id: "u", body: "function() {}" }), failsWith(400));
  await assert.rejects(database.users.create({ id: "someone" }), failsWith(400));
  await assert.rejects(c.deleteAllItemsForPartitionKey("p"), failsWith(400));
});
