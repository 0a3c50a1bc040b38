// Package find has the use case of people who have an id and search for what it names: an
// event, a bundle, a request to a domain for the content of a bundle, a delivery, or a trace.
//
// The answer has the stored history, in order of time: accepted, opened, asked, answered,
// dequeued, skipped. It also says what the event, bundle or delivery waits for. Each wait has a
// [Cause] of a closed set, and says what to do next. The texts of steps and waits can be shown
// unchanged by a command or on a page.
//
// It promises that the answer says what was searched, and what could not be read. If an event
// may be in any mailbox, one answer searches as many as its limits allow, and the next one
// continues there. [Answer.IsUnknown] is true if everything was searched and read, without a
// result.
//
// Answers may be outdated: while a mailbox is in use, a read may be stale, and its parts may be
// from different times. No rule depends on an answer. The package leaves the reading of
// mailboxes to [repository.Finder], and the explanation of a delivery to package inspect. It
// only reads, so a failure leaves nothing behind.
package find
