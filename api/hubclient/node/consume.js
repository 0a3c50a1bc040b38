import { NotOpenError } from "./errors.js";
import { Backoff, isTemporary, maxPause } from "./retry.js";

const maxConsumerPause = 10 * 60_000; // also if the hub asks for more, so that it is asked again in time
const dequeueGrace = 10_000; // for a bundle that was handled when the signal aborted

// A RedeliveryError is why a bundle that was fetched is delivered again.
class RedeliveryError extends Error {
  name = "RedeliveryError";
}

// consume fetches bundles and passes them to handle until the signal aborts. See index.d.ts.
export async function consume(client, actor, handle, { signal, group, format, wait = 30_000, patience = Infinity, pauseLimit = 60_000, onError } = {}) {
  const { now, sleep, random, newId } = client.options;
  const failing = new Backoff(random, pauseLimit);
  const idle = new Backoff(random, maxPause);
  const never = new AbortController().signal;
  const stopped = () => signal?.aborted ?? false;
  let id, lastGood = now(), isExhausted = false;

  // pause waits, and returns early if the signal aborts.
  const pause = (ms) => sleep(ms, signal ?? never).catch(() => {});

  // peek asks for an id of its own, so that an attempt whose answer is lost is repeated for the same bundle.
  const peek = async () => {
    id ??= newId();
    try {
      return await client.peekOnce(actor, { group, format, bundleId: id, wait }, signal);
    } catch (error) {
      if (error.status !== 409) throw error;
      // Another bundle is open: take it, because its consumer may have ended. Or the id is used up.
      id = undefined;
      return client.peekOnce(actor, { group, format }, signal);
    }
  };

  // failed waits before an attempt is repeated, or throws if it is not.
  const failed = async (error) => {
    if (stopped()) return;
    if (isExhausted || (!(error instanceof RedeliveryError) && !isTemporary(error))) throw error;
    const ms = Math.min(failing.pause(error), maxConsumerPause);
    isExhausted = now() - lastGood + ms > patience;
    if (isExhausted) throw error instanceof RedeliveryError ? error.cause : error;
    onError?.(error instanceof RedeliveryError ? error.cause : error, ms);
    await pause(ms);
  };

  // dequeue does not give up before consume does, so that the bundle is not handled once more.
  const dequeue = async (bundle) => {
    const grace = new AbortController();
    let timer;
    const stop = () => (timer = setTimeout(() => grace.abort(), dequeueGrace));
    if (stopped()) stop();
    else signal?.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        try {
          return await bundle.dequeue({ signal: grace.signal });
        } catch (error) {
          if (stopped() || !isTemporary(error)) throw error;
          await failed(error);
        }
      }
    } finally {
      signal?.removeEventListener("abort", stop);
      clearTimeout(timer);
    }
  };

  const next = async () => {
    const began = now();
    const bundle = await peek();
    if (!bundle) {
      if (now() - began >= wait / 2) idle.reset();
      else await pause(idle.pause()); // the hub is about to stop, or another consumer has dequeued what was open
      return;
    }
    id = bundle.id;
    try {
      await handle(bundle);
      await bundle.drain();
    } catch (error) {
      if (bundle.error?.cause?.isGone) return; // another consumer has dequeued it
      throw new RedeliveryError(`bundle ${bundle.id} was not handled`, { cause: error });
    } finally {
      bundle.close();
    }
    try {
      await dequeue(bundle);
    } catch (error) {
      // 409: its content was deleted, and made again, since it was fetched.
      if (error.status === 409) throw new RedeliveryError(`bundle ${bundle.id} is delivered again`, { cause: error });
      if (!(error instanceof NotOpenError)) throw error;
    }
    id = undefined;
  };

  while (!stopped()) {
    try {
      await next();
      failing.reset();
      lastGood = now();
    } catch (error) {
      await failed(error);
    }
  }
}
