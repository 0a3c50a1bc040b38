// Tests the recipe for Node against a hub that the suite starts. MESSAGEHUB is the path of the
// hub's program, and contract.proto is in the folder of this file.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { ServiceBusClient } from "@azure/service-bus";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { answerRequest, eventIds, receiveNotice, sendEvent } from "./domain.mjs";

const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const actor = "5790001330552";
const ids = ["0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", "1b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c42"];
let hub, url, bus, container;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

before(async () => {
  const [busPort, blobPort] = [await freePort(), await freePort()];
  hub = spawn(process.env.MESSAGEHUB, [
    "serve", "--in-memory", "--listen", "127.0.0.1:0", "--bus-listen", `127.0.0.1:${busPort}`, "--blob-listen", `127.0.0.1:${blobPort}`,
  ], { env: { ...process.env, MESSAGEHUB_DOMAINS: "[{name: Charges, content: request}]" }, stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of createInterface(hub.stdout)) {
    const found = /listens on (\S+) and/.exec(line);
    if (found) {
      url = found[1];
      break;
    }
  }
  hub.stdout.resume();
  bus = new ServiceBusClient(`Endpoint=sb://127.0.0.1:${busPort};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true`);
  const account = new BlobServiceClient(`http://127.0.0.1:${blobPort}/devstoreaccount1`, new StorageSharedKeyCredential("devstoreaccount1", key));
  container = account.getContainerClient("messagehub-exchange");
});

after(async () => {
  await bus?.close();
  if (hub && hub.exitCode === null && hub.kill("SIGTERM")) await once(hub, "exit");
});

const peek = () => fetch(`${url}/v1/peek?wait=20s`, { headers: { "X-Actor-Id": actor } });

test("a domain sends events, answers with content, fails, and is notified of the Dequeue", async () => {
  const sender = bus.createSender("dataavailable-fifo");
  for (const id of ids) {
    await sendEvent(sender, { id, recipient: actor, origin: "Charges", contentType: "PriceList", documentType: "D18", supportsBundling: true, weight: 1 });
  }
  await sender.close();

  const failing = answerRequest(bus, "charges", container, () => {
    throw Object.assign(new Error("not at night"), { reason: 1 });
  });
  assert.equal((await peek()).status, 503);
  await failing;

  let got = [];
  const making = answerRequest(bus, "charges", container, (request, events) => {
    assert.equal(request.MessageType, "PriceList");
    assert.equal(request.ResponseFormatRequested, "Json");
    got = events;
    return [JSON.stringify(events)];
  });
  const peeked = await peek();
  await making;
  assert.equal(peeked.status, 200);
  assert.deepEqual(await peeked.json(), got);
  assert.ok(got.length >= 1);
  assert.deepEqual(got, ids.slice(0, got.length));

  const bundle = peeked.headers.get("MessageId");
  const confirmed = await fetch(`${url}/v1/dequeue/${bundle}`, { method: "DELETE", headers: { "X-Actor-Id": actor } });
  assert.equal(confirmed.status, 200);
  const receiver = bus.createReceiver("charges-dequeue", { skipParsingBodyAsJson: true });
  let heard;
  await receiveNotice(receiver, async (id, recipient, list) => {
    heard = [id, recipient, eventIds(await container.getBlobClient(list).downloadToBuffer())];
  });
  await receiver.close();
  assert.deepEqual(heard, [`${bundle}_${actor}`, actor, got]);
});

test("ids are read as .NET writes them", () => {
  assert.deepEqual(eventIds(Buffer.from("5e4c9f0b527a574d9d0c3f1e6b8a2c41", "hex")), [ids[0]]);
});
