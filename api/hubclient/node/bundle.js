import { BrokenBodyError, FinalError, NotOpenError } from "./errors.js";
import { repeat } from "./retry.js";

// A Bundle is data of an actor: for await (const chunk of bundle) reads its body, as do text() and json(). If the
// connection breaks, the rest is fetched, of this bundle and no other. The loop ends without an error only after the
// whole body.
export class Bundle {
  #client;
  #actor;
  #tag;
  #signal;
  #answer; // undefined: the rest of the body is to be fetched
  #received = 0;
  #error; // with which reading ended
  #lost = { answer: false }; // an attempt may have dequeued the bundle

  constructor(client, actor, answer, signal) {
    const { headers } = answer.response;
    const size = headers.get("Content-Length");
    this.#client = client;
    this.#actor = actor;
    this.#signal = signal;
    this.#answer = answer;
    this.#tag = headers.get("ETag");
    this.id = headers.get("MessageId");
    this.type = headers.get("MessageType");
    this.contentType = headers.get("Content-Type");
    this.size = Number(size);
    this.backlog = Number(headers.get("MessageHub-Backlog") ?? -1);
    if (!this.id || answer.response.status !== 200 || headers.get("Content-Encoding") || size === null) {
      answer.end();
      throw new FinalError("the answer is not a bundle; is this a hub?");
    }
    if (this.size > client.options.maxBundle) {
      answer.end();
      throw new FinalError(`bundle ${this.id} has ${this.size} bytes, want up to ${client.options.maxBundle}; raise maxBundle`);
    }
  }

  // isReceived is true once the whole body was read.
  get isReceived() {
    return this.#received === this.size && !this.#error;
  }

  // error is why the body was not received to its end.
  get error() {
    return this.#error;
  }

  async *[Symbol.asyncIterator]() {
    if (this.#received > 0) throw new Error("the body was read before");
    try {
      while (this.#received < this.size) {
        const { options } = this.#client;
        const chunk = await repeat(options, options.resume, this.#signal, () => this.#read());
        if (this.#received === this.size) await this.#answer.read().catch(() => {}); // the end, after which the connection can be used again
        yield chunk;
      }
    } catch (cause) {
      this.#error = new BrokenBodyError(this.id, this.#received, this.size, cause);
      throw this.#error;
    } finally {
      this.close();
    }
  }

  // text returns the whole body.
  async text() {
    const chunks = [];
    for await (const chunk of this) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
  }

  // json returns the whole body, which is JSON.
  async json() {
    return JSON.parse(await this.text());
  }

  // drain reads what is left of the body.
  async drain() {
    if (this.#error) throw this.#error;
    if (this.#received === 0) {
      for await (const chunk of this) void chunk;
    } else if (!this.isReceived) {
      throw new FinalError("the handler did not read the body to its end");
    }
  }

  // read returns some bytes.
  async #read() {
    this.#answer ??= await this.#resume();
    try {
      const chunk = await this.#answer.read();
      if (chunk === undefined) throw new Error("the connection ended early");
      if (this.#received + chunk.length > this.size) throw new FinalError("the body is longer than was said");
      this.#received += chunk.length;
      return chunk;
    } catch (error) {
      this.close();
      throw this.#tag ? error : new FinalError(error.message, { cause: error });
    }
  }

  // resume fetches the rest of the body.
  async #resume() {
    const from = this.#received;
    const answer = await this.#client.fetchBundle(this.#actor, this.id, this.#signal, { Range: `bytes=${from}-`, "If-Range": this.#tag });
    const { status, headers } = answer.response;
    const isRest = status === 206 && headers.get("Content-Range") === `bytes ${from}-${this.size - 1}/${this.size}`;
    if (headers.get("ETag") !== this.#tag || headers.get("Content-Encoding") || (!isRest && status !== 200)) {
      answer.end();
      throw new FinalError("the hub answered with another body, or another part of it");
    }
    if (status === 200) await answer.skip(from); // the whole once more
    return answer;
  }

  // close ends the stream. The bundle stays open at the hub until it is dequeued.
  close() {
    this.#answer?.end();
    this.#answer = undefined;
  }

  // dequeue confirms that the actor holds the bundle safely. The hub has handed out the bundle, so it was open: if it is
  // not, and the answer to an earlier attempt was lost, dequeue has succeeded.
  async dequeue({ signal } = {}) {
    try {
      await this.#client.dequeueBundle(this.#actor, this.id, signal, this.#lost);
    } catch (error) {
      if (!(error instanceof NotOpenError && error.mayBeDequeued)) throw error;
    }
  }
}
