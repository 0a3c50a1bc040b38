// Tests of the emulator with version 3 of Microsoft's client for Node, which many programs still
// have. It connects by HTTPS only. COSMOS_ENDPOINT is the URL of the emulator, and COSMOS_KEY its key.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BulkOperationType, ConsistencyLevel, CosmosClient } from "@azure/cosmos";

const { COSMOS_ENDPOINT: endpoint, COSMOS_KEY: key } = process.env;
const client = new CosmosClient({ endpoint, key });
after(() => client.dispose());

let database; // of all tests; each has containers of its own
let spread; // 60 items over several physical partitions, for queries

const teams = ["ants", "bees", "cats"];
const items = [...Array(60).keys()].map((n) => ({ id: `i${n}`, pk: `p${n % 12}`, n, team: teams[n % 3], name: { first: `f${n}` }, list: [{ w: n % 5 }, { w: 9 }, { w: n % 2 }] }));

async function container(id, more = {}, options = {}) {
  const { container } = await database.containers.create({ id, partitionKey: { paths: ["/pk"] }, ...more }, options);
  return container;
}

before(async () => {
  ({ database } = await client.databases.create({ id: "suite3" }));
  spread = await container("spread", {}, { offerThroughput: 40000 });
  await Promise.all(items.map((item) => spread.items.create(item)));
});

const failsWith = (code) => (err) => (assert.equal(err.code, code, err.message), true);
const byText = (a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

async function all(query, options) {
  return (await spread.items.query(query, options).fetchAll()).resources;
}

test("databases, containers and throughput are created, read, replaced and deleted", async () => {
  const { database: other } = await client.databases.createIfNotExists({ id: "other3" });
  assert.equal((await client.databases.createIfNotExists({ id: "other3" })).statusCode, 200);
  const { container: c } = await other.containers.create({ id: "c", partitionKey: "/pk" }, { offerThroughput: 500 });
  const { resource } = await c.read();
  await c.replace({ ...resource, defaultTtl: 100 });
  assert.equal((await c.read()).resource.defaultTtl, 100);
  const { resource: offered, offer } = await c.readOffer();
  offered.content.offerThroughput = 600;
  await offer.replace(offered);
  assert.equal((await c.readOffer()).resource.content.offerThroughput, 600);
  await c.delete();
  await assert.rejects(c.read(), failsWith(404));
  await other.delete();
});

test("an item is created, read, replaced, upserted, patched and deleted", async () => {
  const c = await container("crud");
  const created = await c.items.create({ id: "a", pk: "p", n: 1 });
  assert.equal(created.statusCode, 201);
  await assert.rejects(c.items.create({ id: "a", pk: "p" }), failsWith(409));
  const item = c.item("a", "p");
  assert.equal((await item.read()).etag, created.etag);
  assert.equal((await item.replace({ id: "a", pk: "p", n: 2 })).statusCode, 200);
  assert.equal((await c.items.upsert({ id: "b", pk: "p", n: 4 })).statusCode, 201);
  assert.equal((await item.patch([{ op: "incr", path: "/n", value: 3 }])).resource.n, 5);
  await assert.rejects(item.replace({ id: "a", pk: "p" }, { accessCondition: { type: "IfMatch", condition: created.etag } }), failsWith(412));
  assert.equal((await item.delete()).statusCode, 204);
  assert.equal((await item.read()).statusCode, 404);
  for (const pk of [1, true, null, "ü/?#"]) {
    await c.items.create({ id: "x", pk });
    assert.equal((await c.item("x", pk).read()).resource.pk, pk);
  }
});

test("the client keeps the session token of each container", async () => {
  await container("tokens");
  const sent = [];
  const plugin = (request, next) => (sent.push(request.headers["x-ms-session-token"]), next(request));
  const observed = new CosmosClient({ endpoint, key, consistencyLevel: ConsistencyLevel.Session, plugins: [{ on: "request", plugin }] });
  const mine = observed.database("suite3").container("tokens");
  const { headers } = await mine.items.create({ id: "a", pk: "p" });
  await mine.item("a", "p").read();
  assert.equal(sent.at(-1), headers["x-ms-session-token"]);
  observed.dispose();
});

test("ORDER BY, TOP, OFFSET and LIMIT merge the results of partitions", async () => {
  assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n"), items.map((i) => i.n));
  for (const maxItemCount of [undefined, 1, 3]) {
    assert.deepEqual(await all("SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC", { maxItemCount }), [59, 58, 57, 56, 55]);
    assert.deepEqual(await all("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", { maxItemCount }), [10, 11, 12]);
  }
  assert.equal((await all({ query: "SELECT * FROM c WHERE c.n < @n", parameters: [{ name: "@n", value: 13 }] })).length, 13);
});

test("aggregates, GROUP BY and DISTINCT combine the results of partitions", async () => {
  assert.deepEqual(await all("SELECT VALUE COUNT(1) FROM c"), [60]);
  assert.deepEqual(await all("SELECT VALUE AVG(c.n) FROM c"), [29.5]);
  assert.deepEqual((await all("SELECT c.team, COUNT(1) AS count, MAX(c.n) AS most FROM c GROUP BY c.team")).sort(byText), [
    { team: "ants", count: 20, most: 57 }, { team: "bees", count: 20, most: 58 }, { team: "cats", count: 20, most: 59 },
  ]);
  assert.deepEqual((await all("SELECT DISTINCT VALUE c.team FROM c")).sort(), teams);
});

test("subqueries do not depend on the partitions", async () => {
  const heavy = await all("SELECT VALUE h.w FROM c JOIN (SELECT TOP 1 VALUE t FROM t IN c.list ORDER BY t.w DESC) h");
  assert.deepEqual(heavy, Array(60).fill(9));
  assert.deepEqual(await all("SELECT VALUE s.first FROM (SELECT c.name.first, c.n FROM c WHERE c.n > 57) s ORDER BY s.n DESC"), ["f59", "f58"]);
  assert.deepEqual(await all("SELECT VALUE d.first FROM c.name AS d ORDER BY d.first OFFSET 0 LIMIT 2"), ["f0", "f1"]);
  assert.deepEqual(await all("SELECT VALUE COUNT(1) FROM (SELECT c.team, COUNT(1) AS n FROM c GROUP BY c.team) s WHERE s.n = 20"), [3]);
  assert.deepEqual((await all("SELECT VALUE s FROM (SELECT DISTINCT VALUE c.team FROM c) s")).sort(), teams);
  await assert.rejects(all("SELECT VALUE COUNT(1) FROM (SELECT TOP 7 * FROM c) s"), failsWith(400));
});

test("queries continue from continuation tokens", async () => {
  const got = [];
  let continuationToken;
  do {
    const page = await spread.items.query("SELECT VALUE c.n FROM c", { maxItemCount: 8, continuationToken }).fetchNext();
    got.push(...page.resources);
    continuationToken = page.continuationToken;
  } while (continuationToken);
  assert.deepEqual(got.sort((a, b) => a - b), items.map((i) => i.n));
});

test("batches and bulk operations are executed", async () => {
  const c = await container("bulk", {}, { offerThroughput: 30000 });
  const operation = (n) => ({ operationType: BulkOperationType.Upsert, partitionKey: `p${n % 20}`, resourceBody: { id: `i${n}`, pk: `p${n % 20}` } });
  const results = await c.items.bulk([...Array(90).keys()].map(operation));
  assert.ok(results.every((r) => r.statusCode === 201));
  const batch = [{ operationType: BulkOperationType.Create, resourceBody: { id: "a", pk: "p" } }, { operationType: BulkOperationType.Delete, id: "missing" }];
  const { result, code } = await c.items.batch(batch, "p");
  assert.deepEqual([code, result.map((r) => r.statusCode)], [207, [424, 404]]);
});

test("the change feed of a partition key has every item", async () => {
  const feed = spread.items.changeFeed("p7", { startFromBeginning: true });
  const { result } = await feed.fetchNext();
  assert.deepEqual(result.map((i) => i.n).sort((a, b) => a - b), [7, 19, 31, 43, 55]);
});

test("a hierarchical key addresses an item and, by its first parts, several", async () => {
  const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
  const { container: c } = await database.containers.create({ id: "levels", partitionKey }, { offerThroughput: 20000 });
  for (let n = 0; n < 12; n++) await c.items.create({ id: `i${n}`, tenant: `t${n % 3}`, user: `u${n % 4}`, n });
  assert.equal((await c.item("i5", ["t2", "u1"]).read()).resource.n, 5);
  const { resources } = await c.items.query("SELECT VALUE c.n FROM c WHERE c.tenant = 't1' ORDER BY c.n").fetchAll();
  assert.deepEqual(resources, [1, 4, 7, 10]);
});

test("errors have the fields that clients use", async () => {
  await assert.rejects(database.container("nowhere").items.create({ id: "a" }), failsWith(404));
  await assert.rejects(all("SELECT nonsense"), failsWith(400));
  await assert.rejects(spread.scripts.storedProcedures.create({ id: "s", body: "function() {}" }), failsWith(400));
  const stranger = new CosmosClient({ endpoint, key: Buffer.from("another key").toString("base64") });
  await assert.rejects(stranger.databases.readAll().fetchAll(), failsWith(401));
  stranger.dispose();
});
