// A producer of the webhook broker in Node, without any package.

// A Refused is the answer of a hub to a message that it does not take. It is not sent again.
export class Refused extends Error {
  constructor(status, problem) {
    super(`${problem.title ?? "refused"} (${status}): ${problem.detail ?? ""}`);
    this.status = status;
  }
}

export class Producer {
  // url is that of the hub; budget is the limit for the seconds in which a message is sent again.
  constructor({ url, channel, channelToken, id, token, budget = 60 }) {
    this.url = `${url}/broker/channel/${encodeURIComponent(channel)}/broadcast`;
    this.credentials = { "X-Broker-Channel-Token": channelToken, "X-Broker-Producer-ID": id, "X-Broker-Producer-Token": token };
    this.budget = budget;
  }

  // publish sends a message and returns the id that the hub has given to it. The message is stored
  // then. After a failure that may pass, the same message is sent again: the hub stores one id once
  // within 24 hours. So the id has to follow from what the message is about.
  async publish(payload, { id, priority = 0, contentType = "application/json", metadata = {} }) {
    const headers = { ...metadata, ...this.credentials, "Content-Type": contentType, "X-Broker-Message-ID": id, "X-Broker-Message-Priority": String(priority) };
    const names = Object.keys(metadata).join(", ");
    if (names) headers["X-Broker-Metadata-Headers"] = names;
    const end = Date.now() + this.budget * 1000;
    for (let pause = 100; ; pause = Math.min(2 * pause, 5000)) {
      const { message, error, retryAfter = 0 } = await this.#send(headers, payload);
      if (message) return message;
      const wait = retryAfter * 1000 + pause * (0.5 + Math.random());
      if (Date.now() + wait > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  // #send sends a message once. It throws if that is of no use again.
  async #send(headers, body) {
    let response;
    try {
      response = await fetch(this.url, { method: "POST", headers, body, redirect: "manual", signal: AbortSignal.timeout(30_000) });
      if (response.status === 201) return { message: response.headers.get("Location").split("/").pop() };
    } catch (error) {
      return { error }; // it may have been stored
    }
    const problem = await response.json().catch(() => ({}));
    const error = new Refused(response.status, problem);
    if (![429, 502, 503, 504].includes(response.status)) throw error;
    return { error, retryAfter: Number(response.headers.get("Retry-After")) || 0 };
  }
}
