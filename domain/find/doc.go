// Package find is the use case of people who have an id and ask where it is: that of an event, of a
// bundle, of a request to a domain for the content of a bundle, of a delivery, or of a trace.
//
// The answer is what is stored about it, in order of time: accepted, opened, asked, answered,
// dequeued, skipped. And it is what the event, bundle or delivery waits for. Each wait has a [Cause]
// of a closed set, and says what to do next. Steps and waits are made to be shown as they are, by a
// command or on a page.
//
// It promises that the answer says what was looked at, and what could not be read. Where an event
// may be in any mailbox, one answer looks at as many as its limits allow, and the next one continues
// there. [Answer.IsUnknown] is true if everything was looked at and read, and nothing was found.
//
// It reads what is stored and proves nothing: while a mailbox is in use, a read may be stale, and
// its parts may be of different moments. Nothing is decided by it. It leaves the reading of mailboxes
// to [repository.Finder], and the explanation of a delivery to package inspect. A failure leaves
// nothing behind.
package find
