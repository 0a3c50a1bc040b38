// Tests of the emulator with Microsoft's client for Node, which signs requests
// differently. AZURE_STORAGE_CONNECTION_STRING is that of the emulator.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { before, test } from "node:test";
import {
  BlobSASPermissions, BlobServiceClient, ContainerClient, ContainerSASPermissions, BlockBlobClient,
} from "@azure/storage-blob";

const service = BlobServiceClient.fromConnectionString(process.env.AZURE_STORAGE_CONNECTION_STRING);
const container = service.getContainerClient("suite");
before(() => container.create());

const sum = (data) => createHash("sha256").update(data).digest("hex");
const failsWith = (status, code) => (err) => {
  assert.equal(err.statusCode, status, err.message);
  assert.equal(err.code ?? err.details?.errorCode, code);
  return true;
};

test("a container is created once", async () => {
  await assert.rejects(container.create(), failsWith(409, "ContainerAlreadyExists"));
  assert.equal((await container.createIfNotExists()).succeeded, false);
  assert.equal(await container.exists(), true);
  assert.equal(await service.getContainerClient("none").exists(), false);
});

test("50 MB are uploaded in blocks and downloaded", async () => {
  const data = randomBytes(50_000_000);
  const blob = container.getBlockBlobClient("50 MB");
  await blob.uploadData(data, { blockSize: 4 << 20, concurrency: 4 });
  assert.equal(sum(await blob.downloadToBuffer(0, undefined, { blockSize: 4 << 20, concurrency: 4 })), sum(data));

  await blob.uploadStream(Readable.from([data.subarray(0, 30_000_000), data.subarray(30_000_000)]), 1 << 20, 3);
  const all = [];
  for await (const chunk of (await blob.download()).readableStreamBody) all.push(chunk);
  assert.equal(sum(Buffer.concat(all)), sum(data));
});

test("a blob is returned with its properties, with any name", async () => {
  for (const name of ["a/b c/æ%?#+&.xml", "日本", "x//y", "~'()*!"]) {
    const blob = container.getBlockBlobClient(name);
    await blob.upload("0123456789", 10, {
      blobHTTPHeaders: { blobContentType: "application/xml", blobCacheControl: "no-store" },
      metadata: { a_b: "1", a1: "2", ab: "3" },
    });
    const properties = await blob.getProperties();
    assert.equal(properties.contentLength, 10);
    assert.equal(properties.contentType, "application/xml");
    assert.equal(properties.cacheControl, "no-store");
    assert.deepEqual({ ...properties.metadata }, { a_b: "1", a1: "2", ab: "3" });
    assert.equal((await blob.downloadToBuffer(3, 4)).toString(), "3456");
    await blob.delete();
    assert.equal((await blob.deleteIfExists()).succeeded, false);
    await assert.rejects(blob.download(), failsWith(404, "BlobNotFound"));
  }
});

test("conditions decide about requests", async () => {
  const blob = container.getBlockBlobClient("conditions");
  const { etag } = await blob.upload("1", 1, { conditions: { ifNoneMatch: "*" } });
  await assert.rejects(blob.upload("2", 1, { conditions: { ifNoneMatch: "*" } }), failsWith(409, "BlobAlreadyExists"));
  await blob.upload("2", 1, { conditions: { ifMatch: etag } });
  await assert.rejects(blob.upload("3", 1, { conditions: { ifMatch: etag } }), failsWith(412, "ConditionNotMet"));
  await assert.rejects(blob.download(0, undefined, { conditions: { ifMatch: etag } }), failsWith(412, "ConditionNotMet"));
});

test("blobs are listed in pages", async () => {
  const names = [...Array(7).keys()].map((n) => `list/${n}`);
  for (const name of names) await container.getBlockBlobClient(name).upload(name, name.length);
  const found = [];
  for await (const page of container.listBlobsFlat({ prefix: "list/", includeMetadata: true }).byPage({ maxPageSize: 3 })) {
    found.push(page.segment.blobItems.map((item) => item.name));
  }
  assert.deepEqual(found.map((page) => page.length), [3, 3, 1]);
  assert.deepEqual(found.flat(), names);
});

test("missing blobs are refused with their error code", async () => {
  const blob = container.getBlockBlobClient("refused");
  await blob.upload("1", 1);
  await assert.rejects(blob.setTags({ a: "1" }), failsWith(501, "NotImplemented"));
  await assert.rejects(blob.getBlobLeaseClient().acquireLease(15), failsWith(501, "NotImplemented"));
  await assert.rejects(blob.createSnapshot(), failsWith(501, "NotImplemented"));
  await assert.rejects(container.getAppendBlobClient("append").create(), failsWith(501, "NotImplemented"));
});

test("metadata keeps its names", async () => {
  const blob = container.getBlockBlobClient("metadata");
  await blob.upload("data", 4, { metadata: { myKey: "1" } });
  await blob.setMetadata({ myKey: "2", other_Key: "3" });
  await blob.setHTTPHeaders({ blobContentType: "text/plain" });
  for await (const item of container.listBlobsFlat({ prefix: "metadata", includeMetadata: true })) {
    assert.deepEqual({ ...item.metadata }, { myKey: "2", other_Key: "3" });
    assert.equal(item.properties.contentType, "text/plain");
  }
  assert.equal((await blob.downloadToBuffer()).toString(), "data");
});

test("blobs are listed by a delimiter", async () => {
  for (const name of ["tree/a", "tree/b/1", "tree/b/2", "tree/c/3"]) await container.getBlockBlobClient(name).upload("1", 1);
  const found = [];
  for await (const item of container.listBlobsByHierarchy("/", { prefix: "tree/" })) found.push(`${item.kind} ${item.name}`);
  assert.deepEqual(found.sort(), ["blob tree/a", "prefix tree/b/", "prefix tree/c/"]);
});

test("containers are listed and deleted", async () => {
  const other = service.getContainerClient("suite-other");
  await other.create({ metadata: { key: "1" } });
  await other.setMetadata({ key: "2" });
  await other.getBlockBlobClient("x").upload("1", 1);
  const names = [];
  for await (const item of service.listContainers({ prefix: "suite", includeMetadata: true })) names.push(item.name + (item.metadata?.key ?? ""));
  assert.deepEqual(names, ["suite", "suite-other2"]);
  await other.delete();
  assert.equal(await other.exists(), false);
});

test("a list of blocks keeps committed ones", async () => {
  const blob = container.getBlockBlobClient("blocks");
  const id = (n) => Buffer.from(`block ${n}`).toString("base64");
  await blob.stageBlock(id(1), "one", 3);
  await blob.commitBlockList([id(1)]);
  await blob.stageBlock(id(2), "two", 3);
  await blob.commitBlockList([id(2), id(1)]);
  const list = await blob.getBlockList("all");
  assert.deepEqual(list.committedBlocks.map((block) => block.name), [id(2), id(1)]);
  assert.equal((await blob.downloadToBuffer()).toString(), "twoone");
});

test("a blob is copied within the account", async () => {
  const from = container.getBlockBlobClient("from");
  await from.upload("data", 4, { metadata: { key: "1" } });
  const to = container.getBlockBlobClient("to");
  const copied = await (await to.beginCopyFromURL(from.url)).pollUntilDone();
  assert.equal(copied.copyStatus, "success");
  assert.equal((await to.downloadToBuffer()).toString(), "data");
  assert.deepEqual({ ...(await to.getProperties()).metadata }, { key: "1" });
});

test("shared access signatures permit what they name", async () => {
  const expiresOn = new Date(Date.now() + 3_600_000);
  const blob = container.getBlockBlobClient("shared");
  await blob.upload("data", 4);
  const reader = new BlockBlobClient(await blob.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn }));
  assert.equal((await reader.downloadToBuffer()).toString(), "data");
  await assert.rejects(reader.delete(), failsWith(403, "AuthorizationPermissionMismatch"));
  const lister = new ContainerClient(await container.generateSasUrl({ permissions: ContainerSASPermissions.parse("l"), expiresOn }));
  for await (const item of lister.listBlobsFlat({ prefix: "shared" })) assert.equal(item.name, "shared");
  await assert.rejects(lister.getBlockBlobClient("shared").download(), failsWith(403, "AuthorizationPermissionMismatch"));
});

test("a batch sets tiers and deletes blobs", async () => {
  const blobs = ["batch/1", "batch/2"].map((name) => container.getBlockBlobClient(name));
  for (const blob of blobs) await blob.upload("1", 1);
  const batch = service.getBlobBatchClient();
  const tiers = await batch.setBlobsAccessTier(blobs.map((blob) => blob.url), service.credential, "Cool");
  assert.equal(tiers.subResponsesSucceededCount, 2);
  assert.equal((await blobs[0].getProperties()).accessTier, "Cool");
  const urls = [...blobs, container.getBlockBlobClient("batch/none")].map((blob) => blob.url);
  const deleted = await batch.deleteBlobs(urls, service.credential);
  assert.deepEqual(deleted.subResponses.map((answer) => answer.status), [202, 202, 404]);
  assert.equal(await blobs[0].exists(), false);
});

test("checksums of blocks and ranges are returned", async () => {
  const blob = container.getBlockBlobClient("checksums");
  const staged = await blob.stageBlock(Buffer.from("1").toString("base64"), "123456789", 9);
  assert.equal(Buffer.from(staged.xMsContentCrc64).toString("hex"), "8898790a86148bae");
  await blob.commitBlockList([Buffer.from("1").toString("base64")]);
  const range = await blob.download(0, 3, { rangeGetContentMD5: true });
  assert.deepEqual(Buffer.from(range.contentMD5), createHash("md5").update("123").digest());
});

test("rules of CORS permit web pages", async () => {
  const rule = { allowedOrigins: "https://page.example", allowedMethods: "GET", allowedHeaders: "x-ms-*", exposedHeaders: "*", maxAgeInSeconds: 60 };
  await service.setProperties({ cors: [rule] });
  assert.deepEqual((await service.getProperties()).cors, [rule]);
  const asked = (origin) => fetch(container.url, { method: "OPTIONS", headers: { Origin: origin, "Access-Control-Request-Method": "GET" } });
  assert.equal((await asked("https://page.example")).headers.get("access-control-allow-origin"), "https://page.example");
  assert.equal((await asked("https://other.example")).status, 403);
  await service.setProperties({ cors: [] });
});
