// Package original stores events like the predecessor of this hub, with the same sequence of
// requests. It is a baseline for comparisons, not for use.
//
//	container    partition                     document
//	catalog      "SequenceNumber"              the watermark, of all recipients together
//	catalog      recipient_origin              entry: a drawer's first unacknowledged event, by its number
//	cabinet      recipient_origin_contentType  drawer: how many of its events were acknowledged
//	cabinet      id of the drawer              one document for each event
//	idempotency  0 to 255, of the event's id   one document for each event ever received
//	bundle       recipient                     bundle: all ids of its events, and its drawers as the Dequeue writes them
//
// Every path of every document is indexed, because the original used the default index.
//
//   - Save reads the watermark and numbers the events. For all cabinets concurrently, it finds
//     the last drawer, counts its events, creates the first event, reads the drawer again to
//     see whether it needs an entry in the catalog, and fills it with as many events as fit.
//     An event needs two sequential requests, for its id and for itself; the requests of a fill
//     are concurrent. At the end it writes the watermark.
//   - Peek queries an open bundle; then, for all origins concurrently, the first entry of the
//     catalog; reads the watermark; queries six drawers; and reads from all six concurrently
//     every visible, unacknowledged event, even if the bundle will be small.
//   - Add queries whether another bundle is open, and creates the new one.
//   - Acknowledge reads the bundle three times, replaces the drawers if they still have the
//     etag that the Peek saw, corrects the catalog, and replaces the whole bundle.
//
// Differences from the original:
//
//   - A trigger ensured that there was a single open bundle. Here a query of the same cost
//     precedes the create, so two concurrent Adds may both succeed.
//   - The client of the original combined up to a hundred requests of a fill in one round trip.
//     They cost the same request units here, but more round trips: up to 128 requests are
//     concurrent for each cabinet. The counts of requests include each of them.
//   - If the count shows that a drawer is full, it is not filled. The original continued to fill
//     a drawer that had become full exactly at the end of a Save, one event at a time and without
//     a limit, so the tests could not fill six drawers.
//   - The original completed a bundle as soon as its drawers were read. Here Peek
//     waits until all six drawers are read, concurrently.
//   - Data in other stores are left out, which favours this layout: the list of ids in the blob
//     store, and the second write of the bundle after its domain had answered.
//   - The events of an open bundle are read again from its drawers, where the original already
//     had the content. A bundle also stores, as one text, the fields that our ports need.
//   - Event ids are unique in the whole hub. A changed event is reported as a conflict; the original
//     rejected the whole batch.
//
// As in the original, a single process ingests, so Saves take turns. Ingest is its batch, with
// events for any recipients.
//
// Its conformance test lists its guarantees. It keeps these faults of the original: if a Save
// fails between event and entry, its cabinet is never delivered and its numbers are used again;
// an entry that does not point to the first event is deleted, and the Peek returns no data; a Save with
// duplicate ids may fail; an outdated run may open a bundle; bundles are written unconditionally.
// It does not know the number of waiting events: a Next counts the events that it has read, the
// backlog behind an acknowledged bundle is reported as empty, and Queues fails.
package original
