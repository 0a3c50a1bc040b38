// Package find searches for the objects that an id identifies: an event, a bundle, a content
// request to a domain, a delivery, or a trace. Its users are people who have only the id.
//
// An answer contains the stored history in chronological order, for example accepted, opened, answered and
// dequeued. It also says what the event, bundle or delivery waits for. Each wait has a [Cause]
// from a fixed list, and tells the reader what to do next. A command or a page can show the texts
// of steps and waits unchanged.
//
// Every answer lists what was searched, and what could not be read. If an event may be in any
// mailbox, a query searches mailboxes until it reaches a limit. Another query, with [Answer.After],
// continues the search. [Answer.IsUnknown] returns true if everything was searched and read, and
// nothing was found.
//
// Answers may be outdated: while a mailbox is in use, a read may be stale, and the parts of an
// answer may be from different times. No decision of the hub depends on an answer. The package
// leaves the reading of mailboxes to [repository.Finder], and the explanation of a delivery to
// package inspect. It only reads, so a failure leaves nothing behind.
package find
