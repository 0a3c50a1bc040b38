import { randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import { Bundle } from "./bundle.js";
import { consume } from "./consume.js";
import { FinalError, NotOpenError, problemOf } from "./errors.js";
import { isUncertain, repeat, sleep } from "./retry.js";

const maxAnswer = 8 << 20; // bytes of an answer that is not a bundle

const defaults = {
  budget: 60_000, // ms
  resume: 60_000,
  timeout: 40_000, // longer than a hub takes for an answer
  maxBundle: 2 ** 30, // bytes
  fetch: globalThis.fetch,
  sleep,
  now: () => performance.now(), // a clock that never jumps
  random: Math.random,
  newId: randomUUID,
};

// A Client sends requests to a hub. See index.d.ts.
export class Client {
  // http is the client of openapi-fetch, with the types of all routes. It repeats nothing.
  http;

  constructor(options) {
    const { protocol, search, hash, username } = new URL(options.url);
    if (!/^https?:$/.test(protocol) || search || hash || username) throw new Error("want the URL of a hub, such as https://hub.example.org");
    this.options = { ...defaults, ...options };
    this.http = createClient({ baseUrl: options.url.replace(/\/+$/, ""), redirect: "manual", fetch: (request) => this.options.fetch(request) });
    this.http.use({
      onRequest: async ({ request }) => {
        const token = await this.options.token?.();
        if (token) request.headers.set("Authorization", `Bearer ${token}`);
        request.headers.set("Accept-Encoding", "identity"); // whose bytes can be counted
        return request;
      },
    });
  }

  // announce stores events. If some are refused and the others are stored, it rejects with a Problem that has accepted and duplicates.
  announce(events, { signal } = {}) {
    return this.#repeat(signal, async () => (await this.#call("POST", "/v1/data-available", { body: events }, signal)).json());
  }

  // peek returns the open bundle of an actor or, if none is open, opens the next one; undefined if no data waits.
  peek(actor, { signal, ...options } = {}) {
    return this.#repeat(signal, () => this.peekOnce(actor, options, signal));
  }

  // peekOnce is peek without repetitions.
  async peekOnce(actor, { group, bundleId, format, version, wait = 0 }, signal) {
    const params = { header: header(actor), query: { bundleId, format, version, wait: wait ? `${wait}ms` : undefined } };
    const answer = group
      ? await this.#call("GET", "/v1/peek/{group}", { params: { ...params, path: { group } } }, signal, wait)
      : await this.#call("GET", "/v1/peek", { params }, signal, wait);
    if (answer.response.status === 204) {
      answer.end();
      return undefined;
    }
    return new Bundle(this, actor, answer, signal);
  }

  // download returns an open bundle by its id, and opens none.
  download(actor, bundleId, { signal } = {}) {
    return this.#repeat(signal, async () => new Bundle(this, actor, await this.fetchBundle(actor, bundleId, signal), signal));
  }

  fetchBundle(actor, bundleId, signal, more = {}) {
    return this.#call("GET", "/v1/bundles/{bundleId}", { params: { header: { ...header(actor), ...more }, path: { bundleId } } }, signal);
  }

  // dequeue confirms that an actor holds a bundle safely. It does not know whether the bundle was open before; Bundle.dequeue does.
  dequeue(actor, bundleId, { signal } = {}) {
    return this.dequeueBundle(actor, bundleId, signal, { answer: false });
  }

  dequeueBundle(actor, bundleId, signal, lost) {
    return this.#repeat(signal, async () => {
      try {
        (await this.#call("DELETE", "/v1/dequeue/{bundleId}", { params: { header: header(actor), path: { bundleId } } }, signal)).end();
      } catch (error) {
        if (error.isGone) throw new NotOpenError(bundleId, lost.answer, error);
        lost.answer ||= isUncertain(error);
        throw error;
      }
    });
  }

  // queues returns what waits for an actor, group by group.
  queues(actor, { signal } = {}) {
    return this.#repeat(signal, async () => (await (await this.#call("GET", "/v1/queues", { params: { header: header(actor) } }, signal)).json()).queues);
  }

  // consume fetches bundles and passes them to handle until options.signal aborts.
  consume(actor, handle, options = {}) {
    return consume(this, actor, handle, options);
  }

  #repeat(signal, attempt) {
    return repeat(this.options, this.options.budget, signal, attempt);
  }

  // call sends a request once, and returns the beginning of its answer.
  async #call(method, path, init, signal, wait = 0) {
    signal?.throwIfAborted();
    const answer = new Answer(this.options.timeout);
    const timer = answer.expect(wait);
    try {
      const { response, data, error } = await this.http[method](path, {
        ...init, parseAs: "stream", signal: signal ? AbortSignal.any([signal, answer.signal]) : answer.signal,
        // openapi-fetch reads the text of an error, whatever its length.
        fetch: async (request) => limitError(await this.options.fetch(request)),
      });
      if (!response.ok) throw problemOf(response, typeof error === "object" ? JSON.stringify(error) : (error ?? ""));
      answer.begin(response, data);
      return answer;
    } catch (error) {
      answer.end();
      throw answer.reason ?? error;
    } finally {
      clearTimeout(timer);
    }
  }
}

const header = (actor) => (actor ? { "X-Actor-Id": actor } : {});

// limitError cuts off the body of a refusal that is too long.
async function limitError(response) {
  if (response.ok || !response.body) return response;
  const chunks = [];
  let size = 0;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    if ((size += chunk.length) > maxAnswer) break;
  }
  return new Response(Buffer.concat(chunks), response);
}

// An Answer is a response whose request ends if nothing arrives in time.
class Answer {
  #abort = new AbortController();
  #timeout;
  #reader;

  constructor(timeout) {
    this.#timeout = timeout;
  }

  get signal() {
    return this.#abort.signal;
  }

  // reason is set if the request ended because nothing arrived.
  reason;

  expect(more = 0) {
    return setTimeout(() => {
      this.reason = new Error("nothing has arrived in time");
      this.#abort.abort(this.reason);
    }, this.#timeout + more);
  }

  begin(response, body) {
    this.response = response;
    this.#reader = (body ?? response.body)?.getReader();
  }

  // read returns some bytes of the body, undefined at its end.
  async read() {
    const timer = this.expect();
    try {
      return (await this.#reader?.read())?.value;
    } catch (error) {
      throw this.reason ?? error;
    } finally {
      clearTimeout(timer);
    }
  }

  // skip reads n bytes and keeps what follows them in the same chunk.
  async skip(n) {
    while (n > 0) {
      const chunk = await this.read();
      if (chunk === undefined) throw new Error("the connection ended early");
      n -= chunk.length;
      if (n < 0) {
        const rest = chunk.subarray(n);
        const read = this.read;
        this.read = async () => {
          this.read = read;
          return rest;
        };
      }
    }
  }

  async json() {
    const chunks = [];
    let size = 0;
    for (let chunk; (chunk = await this.read()) !== undefined; ) {
      chunks.push(chunk);
      if ((size += chunk.length) > maxAnswer) throw new FinalError(`the answer is longer than ${maxAnswer} bytes`);
    }
    try {
      return JSON.parse(Buffer.concat(chunks).toString("utf8"));
    } catch (cause) {
      throw new FinalError("the answer cannot be read; is this a hub?", { cause });
    } finally {
      this.end();
    }
  }

  end() {
    this.#reader?.cancel().catch(() => {}); // nothing more is wanted of it
    this.#abort.abort();
  }
}
