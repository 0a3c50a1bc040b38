// A producer of the webhook broker in Node, without any package.

// Refused: the hub refused a message permanently, so the message is not sent again.
export class Refused extends Error {
  constructor(status, problem) {
    super(`${problem.title ?? "refused"} (${status}): ${problem.detail ?? ""}`);
    this.status = status;
  }
}

export class Producer {
  // url is the URL of the hub. budget limits the seconds in which a failed message is sent again.
  constructor({ url, channel, channelToken, id, token, budget = 60 }) {
    this.url = `${url}/broker/channel/${encodeURIComponent(channel)}/broadcast`;
    this.credentials = { "X-Broker-Channel-Token": channelToken, "X-Broker-Producer-ID": id, "X-Broker-Producer-Token": token };
    this.budget = budget;
  }

  // publish sends a message and returns the hub's id of the stored message. After a temporary failure,
  // it sends the message again with the same id: the hub stores an id once within 24 hours. So derive
  // id from the subject of the message.
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

  // #send sends a message once. It throws if a retry cannot succeed, and returns other errors.
  async #send(headers, body) {
    let response;
    try {
      response = await fetch(this.url, { method: "POST", headers, body, redirect: "manual", signal: AbortSignal.timeout(30_000) });
      if (response.status === 201) return { message: response.headers.get("Location").split("/").pop() };
    } catch (error) {
      return { error }; // the hub may have stored the message
    }
    const problem = await response.json().catch(() => ({}));
    const error = new Refused(response.status, problem);
    if (![429, 502, 503, 504].includes(response.status)) throw error;
    return { error, retryAfter: Number(response.headers.get("Retry-After")) || 0 };
  }
}
