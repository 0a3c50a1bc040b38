// A Problem is the answer of a hub to a request that it refuses.
export class Problem extends Error {
  constructor(status, document = {}, retryAfter = 0) {
    const { type = "", title = "The request failed", detail = "", instance = "", errors = [], accepted, duplicates } = document;
    super(`${title} (${status})${detail && `: ${detail}`}${errors.slice(0, 10).map((f) => `; ${f.pointer.replace(/^\//, "")}: ${f.detail}`).join("")}`);
    Object.assign(this, { name: "Problem", status, type, title, detail, instance, errors, accepted, duplicates, retryAfter });
  }

  // isTemporary is true if the same request may succeed later.
  get isTemporary() {
    return [429, 502, 503, 504].includes(this.status);
  }

  // isGone is true if the bundle that a request names is not open.
  get isGone() {
    return this.status === 404 || this.status === 410;
  }
}

// A NotOpenError says that a bundle cannot be dequeued, because it is not open for the actor. If mayBeDequeued is
// true, an earlier attempt of the same call may have dequeued it.
export class NotOpenError extends Error {
  constructor(bundleId, mayBeDequeued, problem) {
    super(`bundle ${bundleId} is not open${mayBeDequeued ? "; an earlier attempt, whose answer was lost, may have dequeued it" : ""}`, { cause: problem });
    Object.assign(this, { name: "NotOpenError", bundleId, mayBeDequeued });
  }
}

// A BrokenBodyError says that the body of a bundle was not received to its end.
export class BrokenBodyError extends Error {
  constructor(bundleId, received, size, cause) {
    super(`bundle ${bundleId} broke off after ${received} of ${size} bytes: ${cause.message}`, { cause });
    Object.assign(this, { name: "BrokenBodyError", bundleId, received, size });
  }
}

// A FinalError is one that a repetition does not change.
export class FinalError extends Error {
  name = "FinalError";
}

// problemOf returns the problem in an answer whose text is at hand.
export function problemOf(response, text) {
  const location = response.headers.get("Location");
  let document = { detail: `The answer is no problem document; is this a hub? It begins ${JSON.stringify(text.slice(0, 80))}.`, title: response.statusText };
  if (response.status >= 300 && response.status < 400 && location) {
    document.detail = `The answer redirects to ${location}, which is not followed; if that is the hub, use its URL.`;
  } else if (/^application\/problem\+json\b/.test(response.headers.get("Content-Type") ?? "")) {
    try {
      document = JSON.parse(text);
    } catch {
      // It stays what it was said to be.
    }
  }
  return new Problem(response.status, document, retryAfterOf(response.headers));
}

const maxRetryAfter = 24 * 60 * 60 * 1000;

// retryAfterOf returns the pause in ms that headers ask for: a number of seconds or a date. A date is compared with that
// of the answer, so that the clock of this machine does not matter.
function retryAfterOf(headers) {
  const text = headers.get("Retry-After") ?? "";
  const pause = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.parse(headers.get("Date") ?? "");
  return pause > 0 && pause <= maxRetryAfter ? pause : 0;
}
