import type { Client as HTTPClient } from "openapi-fetch";
import type { components, paths } from "./openapi.js";

export type Event = components["schemas"]["Event"];
export type Queue = components["schemas"]["Queue"];

/** How many events are stored now, and how many were before with the same content. */
export interface Announced {
  accepted: number;
  duplicates: number;
}

/** What is wrong at one place of the body of a request. */
export interface Fault {
  pointer: string;
  detail: string;
}

/** The answer of a hub to a request that it refuses. */
export class Problem extends Error {
  readonly status: number;
  readonly type: string;
  readonly title: string;
  readonly detail: string;
  /** Identifies the request for the operators of the hub. */
  readonly instance: string;
  readonly errors: Fault[];
  /** Set, as duplicates is, if all events are stored but those that errors names. */
  readonly accepted?: number;
  readonly duplicates?: number;
  /** The pause in ms that the hub asks for; 0: none. */
  readonly retryAfter: number;
  /** The same request may succeed later. */
  readonly isTemporary: boolean;
  /** The bundle that the request names is not open. */
  readonly isGone: boolean;
}

/** A bundle cannot be dequeued, because it is not open for the actor. */
export class NotOpenError extends Error {
  readonly bundleId: string;
  /** An earlier attempt of the same call may have dequeued it. */
  readonly mayBeDequeued: boolean;
}

/** The body of a bundle was not received to its end. */
export class BrokenBodyError extends Error {
  readonly bundleId: string;
  readonly received: number;
  readonly size: number;
}

export interface Options {
  /** The URL of the hub, such as https://hub.example.org. */
  url: string;
  /** Returns the token of the caller, for each request. Default: none, for a hub without an issuer, which believes the actor that a request names. */
  token?: () => string | undefined | Promise<string | undefined>;
  /** The time in ms in which a request can be repeated. Default: 60000; -1: no request is repeated. */
  budget?: number;
  /** The same for a download that broke off, since the last piece of it has arrived. */
  resume?: number;
  /** The limit in ms for the time in which nothing arrives. Default: 40000. */
  timeout?: number;
  /** The limit for the body of a bundle in bytes. Default: 1 GB. */
  maxBundle?: number;
  /** Makes the requests. Default: that of Node; another has other certificates. */
  fetch?: (request: Request) => Promise<Response>;
  /** Waits, and rejects if the signal aborts before. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
  /** Returns a time in ms that never decreases. Default: performance.now. */
  now?: () => number;
  /** Returns numbers in [0, 1), by which pauses vary. */
  random?: () => number;
  /** Returns ids for bundles, new UUIDs. */
  newId?: () => string;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface PeekOptions extends CallOptions {
  /** A group of domains, such as timeseries. Default: all of them. */
  group?: string;
  /** The id of a bundle that has to be opened, a UUID that is new to the actor. */
  bundleId?: string;
  /** The format of content that a domain makes. Default: json. */
  format?: "json" | "xml";
  version?: string;
  /** How long in ms the hub waits for data, up to a minute. */
  wait?: number;
}

/** Data of an actor, and a stream of its body, which is read once: by a loop, by text() or by json(). */
export class Bundle implements AsyncIterable<Uint8Array> {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  /** Of the body in bytes. */
  readonly size: number;
  /** How many events wait behind the bundle; -1: not known. */
  readonly backlog: number;
  /** The whole body was read. */
  readonly isReceived: boolean;
  /** Ends without an error only after the whole body. If the connection breaks, the rest is fetched. */
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
  text(): Promise<string>;
  json(): Promise<unknown>;
  /** Confirms that the actor holds the bundle safely. */
  dequeue(options?: CallOptions): Promise<void>;
  /** Ends the stream. The bundle stays open at the hub. */
  close(): void;
}

export interface ConsumeOptions extends CallOptions {
  group?: string;
  format?: "json" | "xml";
  /** How long in ms a request waits for data, up to a minute. Default: 30000. */
  wait?: number;
  /** How long in ms attempts may fail in a row before consume rejects with the last error. Default: no limit. */
  patience?: number;
  /** The limit in ms for the pauses between attempts that fail, without Retry-After. Default: 60000. */
  pauseLimit?: number;
  /** Is called before the pause after an attempt that failed, which is repeated. */
  onError?: (error: unknown, pause: number) => void;
}

/** Sends requests to a hub. Requests that fail for a reason that may pass are repeated, which is safe for all of them. */
export class Client {
  constructor(options: Options);
  /** All routes of the hub, with their types. It repeats nothing. */
  readonly http: HTTPClient<paths>;
  /**
   * Stores events. If some are refused and the others are stored, it rejects with a Problem that has accepted and
   * duplicates, and whose errors name those that are refused.
   */
  announce(events: Event[], options?: CallOptions): Promise<Announced>;
  /** Returns the open bundle of an actor or, if none is open, opens the next one; undefined if no data waits. */
  peek(actor: string, options?: PeekOptions): Promise<Bundle | undefined>;
  /** Returns an open bundle by its id, and opens none. */
  download(actor: string, bundleId: string, options?: CallOptions): Promise<Bundle>;
  /** Confirms that an actor holds a bundle safely. Rejects with a NotOpenError if it is not open. */
  dequeue(actor: string, bundleId: string, options?: CallOptions): Promise<void>;
  queues(actor: string, options?: CallOptions): Promise<Queue[]>;
  /**
   * Fetches the bundles of an actor, one after the other, and passes them to handle until the signal aborts. When handle
   * returns, the bundle is dequeued; if it throws, or the body was not received to its end, the bundle is delivered
   * again. A handler may get a bundle more than once, and recognizes it by the ids of its events. It reads the body
   * to its end, or leaves it unread.
   *
   * Any number of processes may consume for one actor. They do not share the data: one that finds a bundle which it has
   * not opened takes it, because its owner may have ended.
   */
  consume(actor: string, handle: (bundle: Bundle) => unknown, options?: ConsumeOptions): Promise<void>;
}
