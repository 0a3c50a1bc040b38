// Package original lays events out as the hub before this one did, with its sequence of
// requests. It is a baseline to measure against, not to be used.
//
//	container    partition                     document
//	catalog      "SequenceNumber"              the watermark, of all recipients together
//	catalog      recipient_origin              entry: a drawer's first unacknowledged event, by its number
//	cabinet      recipient_origin_contentType  drawer: how many of its events were acknowledged
//	cabinet      id of the drawer              event, one document for each
//	idempotency  0 to 255, of the event's id   one document for each event ever received
//	bundle       recipient                     bundle: all ids of its events, and its drawers as they will be
//
// Every path of every document is indexed: the original asked for nothing else.
//
//   - Save reads the watermark, numbers the events, and takes all cabinets at once: find
//     the last drawer, count what is in it, create the first event, read the drawer again
//     to see whether it needs an entry in the catalog, and fill it up with all that goes
//     in. An event takes two requests, one after the other, for its id and itself; of the
//     fill, many are under way at once. When all is done the watermark is written.
//   - Peek asks for an open bundle; then, for all origins at once, for the first entry of
//     the catalog; reads the watermark; asks for six drawers; and reads, of all six at
//     once, every event that is visible and not acknowledged, however small the bundle
//     will be.
//   - Add looks for another open bundle and creates this one.
//   - Acknowledge reads the bundle three times, replaces the drawers, if they still have
//     the etag that the Peek saw, puts the catalog right, and replaces the bundle whole.
//
// Where it differs from the original:
//
//   - A trigger made sure of the single open bundle; we have none, so a query of the same
//     price goes before the create. Two Adds at once may both succeed.
//   - The client of the original grouped the requests of a fill by a hundred on their way.
//     They cost the same units, but more round trips here: up to 128 are under way for
//     each cabinet. Counts of requests are counts of what was asked for.
//   - A drawer that the count shows to be full is left alone. The original kept filling it, one
//     event at a time and without a limit, if it had become full exactly at the end of a Save; so
//     six drawers would never have come about here.
//   - Its Peek continued with a bundle as soon as the drawers that it needs were read, and let the
//     other reads run. Here it waits for all six, which are read at the same time.
//   - What it kept elsewhere is left out, to its advantage: the list of ids in the blob
//     store, and the second write of the bundle once its domain had answered.
//   - An open bundle's events are read again from its drawers, where the original had the
//     content by then; and a bundle carries, as one text, what our ports ask of it.
//   - Event ids are unique for the whole hub. A changed event is a conflict of its own,
//     where the original gave up the whole batch.
//
// One process ingests, as there was one: Saves take turns. Ingest is its batch, of events
// for any recipients.
//
// What it promises is listed by its conformance test. The faults of the original that are kept,
// because a repair would make it something else: a Save that fails between event and entry leaves a
// cabinet that is never served, and numbers that are used again; an entry that is not of the first
// event is deleted, and the answer is that there is no data; ids that are twice in one Save may
// make it fail; a run that is outdated may open a bundle; bundles are written without a condition;
// and it does not know how much waits: a Next counts what it has read, what is behind an
// acknowledged bundle is said to be nothing, and Queues fails.
package original
