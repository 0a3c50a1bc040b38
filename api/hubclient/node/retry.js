import { setTimeout as delay } from "node:timers/promises";
import { FinalError, NotOpenError, Problem } from "./errors.js";

const minPause = 100;
export const maxPause = 5_000;

// A Backoff has pauses in ms that grow up to a limit.
export class Backoff {
  next = 0;

  constructor(random, limit) {
    Object.assign(this, { random, limit });
  }

  // pause returns the next pause: one that varies, and what error asks for in addition.
  pause(error) {
    this.next = Math.min(Math.max(this.next, minPause), this.limit);
    const pause = this.next / 2 + (this.random() * this.next) / 2;
    this.next *= 2;
    return pause + (problemIn(error)?.retryAfter ?? 0);
  }

  reset() {
    this.next = 0;
  }
}

// problemIn returns the Problem that an error is or has as its cause.
export function problemIn(error) {
  for (; error instanceof Error; error = error.cause) if (error instanceof Problem) return error;
  return undefined;
}

// isTemporary says whether the same request may succeed later.
export function isTemporary(error) {
  const problem = problemIn(error);
  if (problem) return problem.isTemporary;
  for (; error instanceof Error; error = error.cause) {
    if (error instanceof FinalError || error instanceof NotOpenError || error.code === "ENOTFOUND" || /CERT|SELF_SIGNED/.test(error.code ?? "")) return false;
  }
  return true;
}

// isUncertain says whether the hub may have carried out a request that failed.
export function isUncertain(error) {
  const problem = problemIn(error);
  return problem ? problem.status >= 500 : error?.cause?.code !== "ECONNREFUSED";
}

// repeat calls attempt until it succeeds, fails for good, or the budget (ms) is spent.
export async function repeat({ now, sleep, random }, budget, signal, attempt) {
  const end = now() + budget;
  const backoff = new Backoff(random, maxPause);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (signal?.aborted || !isTemporary(error)) throw error;
      const pause = backoff.pause(error);
      if (now() + pause > end) throw error;
      await sleep(pause, signal);
    }
  }
}

// sleep waits, and rejects if signal aborts before.
export const sleep = (ms, signal) => delay(ms, undefined, { signal });

