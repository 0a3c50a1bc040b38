// Tests of the emulator with Microsoft's client for Node, which signs requests
// differently. AZURE_STORAGE_CONNECTION_STRING is that of the emulator.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { before, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";

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
  await assert.rejects(blob.setMetadata({ a: "1" }), failsWith(501, "NotImplemented"));
  await assert.rejects(blob.createSnapshot(), failsWith(501, "NotImplemented"));
  await assert.rejects(container.getAppendBlobClient("append").create(), failsWith(501, "NotImplemented"));
});
