// Uses the types of the package. It has to type-check.
import { Client, NotOpenError, Problem, type Event } from "./index.js";

const event: Event = {
  id: "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41",
  recipient: "5790001330552",
  origin: "TimeSeries",
  contentType: "measured-data",
  documentType: "NotifyValidatedMeasureData",
  supportsBundling: true,
  weight: 1,
  payload: { kwh: [1.5, 1.25] },
};

// run announces an event and consumes until the signal aborts.
export async function run(url: string, signal: AbortSignal): Promise<string> {
  const hub = new Client({ url, token: async () => "…", budget: 30_000 });
  try {
    const { accepted } = await hub.announce([event], { signal });
    await hub.consume(event.recipient, async (bundle) => {
      let size = 0;
      for await (const chunk of bundle) size += chunk.length;
      console.log(bundle.id, bundle.contentType, size === bundle.size);
    }, { signal, group: "timeseries", onError: (error, pause) => console.error(error, pause) });
    const bundle = await hub.peek(event.recipient, { wait: 20_000 });
    await bundle?.dequeue();
    const queues = await hub.queues(event.recipient);
    const { data } = await hub.http.GET("/v1/queues", { params: { header: { "X-Actor-Id": event.recipient } } });
    return `${accepted} ${queues[0]?.waiting} ${data?.queues.length}`;
  } catch (error) {
    if (error instanceof NotOpenError) return error.bundleId;
    if (error instanceof Problem) return `${error.title} ${error.errors.map((f) => f.pointer)} ${error.retryAfter}`;
    throw error;
  }
}
