// Tests of the emulator with Microsoft's client for Node, which has another AMQP
// implementation. SERVICEBUS_CONNECTION_STRING is that of the emulator; its
// entities are those of entities.json.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";

const client = new ServiceBusClient(process.env.SERVICEBUS_CONNECTION_STRING);
after(() => client.close());

const patience = { maxWaitTimeInMs: 5000 };
const bodies = (messages) => messages.map((m) => m.body);

async function receiveAll(receiver, count) {
  const all = [];
  while (all.length < count) {
    const some = await receiver.receiveMessages(count - all.length, patience);
    assert.notEqual(some.length, 0, `only ${all.length} of ${count} messages came`);
    all.push(...some);
  }
  return all;
}

async function send(entity, ...messages) {
  const sender = client.createSender(entity);
  await sender.sendMessages(messages);
  await sender.close();
}

test("a message is sent, received and completed", async () => {
  await send("plain", { body: { n: 1 }, messageId: "m1", subject: "s", applicationProperties: { colour: "red", size: 5 } });
  const receiver = client.createReceiver("plain");
  const [m] = await receiveAll(receiver, 1);
  assert.deepEqual(m.body, { n: 1 });
  assert.equal(m.messageId, "m1");
  assert.equal(m.subject, "s");
  assert.deepEqual(m.applicationProperties, { colour: "red", size: 5 });
  await receiver.completeMessage(m);
  assert.deepEqual(await receiver.peekMessages(10), []);
  await receiver.close();
});

test("a batch arrives completely and in order", async () => {
  const sender = client.createSender("plain");
  const batch = await sender.createMessageBatch();
  for (let i = 0; i < 50; i++) assert.ok(batch.tryAddMessage({ body: i }));
  await sender.sendMessages(batch);
  await sender.close();
  const receiver = client.createReceiver("plain", { receiveMode: "receiveAndDelete" });
  assert.deepEqual(bodies(await receiveAll(receiver, 50)), [...Array(50).keys()]);
  await receiver.close();
});

test("an abandoned message is delivered again, and finally becomes a dead letter", async () => {
  await send("plain", { body: "poison" });
  const receiver = client.createReceiver("plain");
  for (const count of [0, 1, 2]) {
    const [m] = await receiveAll(receiver, 1);
    assert.equal(m.deliveryCount, count);
    await receiver.abandonMessage(m, { tried: count });
  }
  await receiver.close();
  const dead = client.createReceiver("plain", { subQueueType: "deadLetter" });
  const [m] = await receiveAll(dead, 1);
  assert.equal(m.body, "poison");
  assert.equal(m.deadLetterReason, "MaxDeliveryCountExceeded");
  assert.equal(m.applicationProperties.tried, 2);
  await dead.completeMessage(m);
  await dead.close();
});

test("a message is dead-lettered with a reason", async () => {
  await send("plain", { body: "bad" });
  const receiver = client.createReceiver("plain");
  const [m] = await receiveAll(receiver, 1);
  await receiver.deadLetterMessage(m, { deadLetterReason: "unreadable", deadLetterErrorDescription: "no such thing" });
  await receiver.close();
  const dead = client.createReceiver("plain", { subQueueType: "deadLetter", receiveMode: "receiveAndDelete" });
  const [d] = await receiveAll(dead, 1);
  assert.equal(d.deadLetterReason, "unreadable");
  assert.equal(d.deadLetterErrorDescription, "no such thing");
  await dead.close();
});

test("a deferred message is received by its number", async () => {
  await send("plain", { body: "later" });
  const receiver = client.createReceiver("plain");
  const [m] = await receiveAll(receiver, 1);
  await receiver.deferMessage(m);
  const [again] = await receiver.receiveDeferredMessages(m.sequenceNumber);
  assert.equal(again.body, "later");
  await receiver.completeMessage(again);
  await receiver.close();
});

test("a lock is renewed", async () => {
  await send("plain", { body: "slow" });
  const receiver = client.createReceiver("plain");
  const [m] = await receiveAll(receiver, 1);
  const before = m.lockedUntilUtc;
  const until = await receiver.renewMessageLock(m);
  assert.ok(until >= before, `${until} is before ${before}`);
  await receiver.completeMessage(m);
  await receiver.close();
});

test("a scheduled message is delivered at its time, a cancelled one is not", async () => {
  const sender = client.createSender("plain");
  const at = new Date(Date.now() + 1500);
  const [wanted, unwanted] = await sender.scheduleMessages([{ body: "wanted" }, { body: "unwanted" }], at);
  assert.notEqual(wanted.toString(), unwanted.toString());
  await sender.cancelScheduledMessages(unwanted);
  await sender.close();
  const receiver = client.createReceiver("plain", { receiveMode: "receiveAndDelete" });
  const [m] = await receiveAll(receiver, 1);
  assert.equal(m.body, "wanted");
  assert.ok(Date.now() >= at.getTime() - 50, "it came too early");
  assert.deepEqual(await receiver.peekMessages(10), []);
  await receiver.close();
});

test("a session has one receiver, an order, a state and a lock", async () => {
  await send("sessions", ...["a1", "a2", "a3"].map((body) => ({ body, sessionId: "a" })));
  const session = await client.acceptSession("sessions", "a");
  assert.equal(session.sessionId, "a");
  await assert.rejects(client.acceptSession("sessions", "a", { maxAutoLockRenewalDurationInMs: 0 }), { code: "SessionCannotBeLocked" });
  await session.setSessionState({ seen: 3 });
  assert.deepEqual(await session.getSessionState(), { seen: 3 });
  const before = session.sessionLockedUntilUtc;
  assert.ok((await session.renewSessionLock()) >= before);
  for (const want of ["a1", "a2", "a3"]) {
    const [m] = await receiveAll(session, 1);
    assert.equal(m.body, want);
    await session.completeMessage(m);
  }
  await session.close();
});

test("the next session has messages", async () => {
  await send("sessions", { body: "b1", sessionId: "b" });
  const session = await client.acceptNextSession("sessions");
  assert.equal(session.sessionId, "b");
  const [m] = await receiveAll(session, 1);
  await session.completeMessage(m);
  await session.close();
});

test("a subscription receives the messages that its rules match", async () => {
  await send("news", { body: "r", applicationProperties: { colour: "red" } }, { body: "g", applicationProperties: { colour: "green" } });
  const all = client.createReceiver("news", "all", { receiveMode: "receiveAndDelete" });
  assert.deepEqual(bodies(await receiveAll(all, 2)), ["r", "g"]);
  const red = client.createReceiver("news", "red", { receiveMode: "receiveAndDelete" });
  assert.deepEqual(bodies(await receiveAll(red, 1)), ["r"]);
  assert.deepEqual(await red.peekMessages(10), []);
  await all.close();
  await red.close();
});

test("rules are added, listed and removed", async () => {
  const manager = client.createRuleManager("news", "red");
  await manager.createRule("big", { correlationId: "big", applicationProperties: { size: 9 } });
  const rules = [];
  for await (const rule of manager.listRules()) rules.push(rule);
  assert.deepEqual(rules.map((r) => r.name).sort(), ["big", "red"]);
  assert.equal(rules.find((r) => r.name === "red").filter.sqlExpression, "colour = 'red'");
  assert.equal(rules.find((r) => r.name === "big").filter.correlationId, "big");
  await manager.deleteRule("big");
});

test("subscribe receives messages as they arrive", async () => {
  const receiver = client.createReceiver("plain");
  const got = [];
  const done = new Promise((resolve, reject) => {
    receiver.subscribe({
      processMessage: async (m) => {
        got.push(m.body);
        if (got.length === 20) resolve();
      },
      processError: async ({ error }) => reject(error),
    });
  });
  await send("plain", ...Array.from({ length: 20 }, (_, i) => ({ body: i })));
  await done;
  await receiver.close();
  assert.deepEqual(got, [...Array(20).keys()]);
  const left = client.createReceiver("plain");
  assert.deepEqual(await left.peekMessages(10), []);
  await left.close();
});

test("a duplicate message is stored once", async () => {
  await send("once", { body: 1, messageId: "same" }, { body: 2, messageId: "other" });
  await send("once", { body: 3, messageId: "same" });
  const receiver = client.createReceiver("once", { receiveMode: "receiveAndDelete" });
  assert.deepEqual(bodies(await receiveAll(receiver, 2)), [1, 2]);
  assert.deepEqual(await receiver.peekMessages(10), []);
  await receiver.close();
});

test("entities and rules are managed over HTTPS", async () => {
  const admin = new ServiceBusAdministrationClient(process.env.SERVICEBUS_CONNECTION_STRING);
  const queue = await admin.createQueue("made/here", { lockDuration: "PT45S", requiresSession: true, userMetadata: "mine" });
  assert.equal(queue.name, "made/here");
  assert.equal(queue.lockDuration, "PT45S");
  assert.equal(queue.requiresSession, true);
  await assert.rejects(admin.createQueue("made/here"), { code: "MessageEntityAlreadyExistsError" });
  assert.equal(await admin.queueExists("none"), false);
  await send("made/here", { body: 1, sessionId: "s" });
  assert.equal((await admin.getQueueRuntimeProperties("made/here")).activeMessageCount, 1);
  await admin.createTopic("papers");
  const subscription = await admin.createSubscription("papers", "mine");
  assert.equal(subscription.maxDeliveryCount, 10);
  const filter = { sqlExpression: "a = @b", sqlParameters: { "@b": 5 } };
  await admin.createRule("papers", "mine", "sql", filter, { sqlExpression: "SET c = 1" });
  const rule = await admin.getRule("papers", "mine", "sql");
  assert.deepEqual(rule.filter, filter);
  assert.equal(rule.action.sqlExpression, "SET c = 1");
  await admin.createRule("papers", "mine", "match", { subject: "x", applicationProperties: { n: 5, s: "t" } });
  const names = [];
  for await (const r of admin.listRules("papers", "mine")) names.push(r.name);
  assert.deepEqual(names.sort(), ["$Default", "match", "sql"]);
  const topic = await admin.getTopic("papers");
  topic.userMetadata = "changed";
  assert.equal((await admin.updateTopic(topic)).userMetadata, "changed");
  await admin.deleteTopic("papers");
  await assert.rejects(admin.getTopic("papers"), { code: "MessageEntityNotFoundError" });
  await admin.deleteQueue("made/here");
});

// The client ignores the detach of a link while it waits for the outcome of a message. It cannot
// use a sender again at once whose link was detached, so the second message has another sender.
test("a message over the limit is refused at once", { timeout: 20_000 }, async () => {
  const sender = client.createSender("plain");
  await assert.rejects(sender.sendMessages({ body: "x".repeat(2 << 20) }), { code: "MessageSizeExceeded" });
  await sender.close();
  await send("plain", { body: "small" });
  const receiver = client.createReceiver("plain", { receiveMode: "receiveAndDelete" });
  assert.deepEqual(bodies(await receiveAll(receiver, 1)), ["small"]);
  await receiver.close();
});

test("a missing entity is not found", async () => {
  const sender = client.createSender("nowhere");
  await assert.rejects(sender.sendMessages({ body: 1 }), { code: "MessagingEntityNotFound" });
  await sender.close();
});
