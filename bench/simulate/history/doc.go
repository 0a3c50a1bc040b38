// Package history tells whether what several clients saw of one mailbox can be
// explained by a hub that does one thing at a time.
//
// A mailbox is what one recipient has in the hub. Clients send to it, peek and
// dequeue, some at the same time. A [Recorder] notes when each operation began,
// when it ended and what was answered; [History.Check] looks for an order of the
// operations in which each takes effect at one moment between the two, and in which
// a hub that keeps its contract gives just these answers. It is linearizability,
// and porcupine does the looking.
//
// # The contract, as one mailbox sees it
//
//   - Events wait in the order of their Sends, those of one Send together, all at
//     the same moment, whatever their cabinets. An id that was sent before is no new
//     event: with the same content it is a duplicate, with another a conflict (H1,
//     H2, H5).
//   - A bundle takes the front of one cabinet, and as many events as the rules of
//     bundling allow, or fewer (H3). It may be fewer for reasons that no client sees:
//     the capacity of drawers, or a node that has not seen the newest yet.
//   - It begins with the first of all that waits in the groups asked for (H4).
//   - Each group has one open bundle at most, and Peek repeats it (H6). A Peek of
//     several groups gives the bundle that has been open longest.
//   - Dequeue takes away the events of the open bundle, once. Any other id is not
//     found, and nothing else is (H7).
//
// "What is saved while a Peek is under way may or may not be seen" is part of the
// contract, and so is that a Peek of several groups may miss the bundle that is just
// being opened in another. So "none" says that no bundle is open and nothing waits
// whose Send had ended when the Peek began. [Options] say what is known less surely
// than that.
//
// # What has no answer
//
// An operation whose answer was lost may have taken effect at any later time, or
// never. A Send or Dequeue is allowed to take effect at the end of all, which comes
// to the same as never. A Peek without an answer says nothing; the bundle that it
// may have opened appears when another shows it, and is then judged by what either
// of the two asked for. What a client does not know it cannot confirm: clients
// dequeue what they were shown, or ids that are no bundle's.
//
// # What it costs
//
// The search is exponential at worst. Histories of up to 60 operations of up to 4
// clients take less than a millisecond as a rule. The search is limited by the number of steps it
// tries rather than by a clock, so a history has the same verdict on every machine,
// and inside of a testing/synctest bubble. A search that was given up has shown
// nothing, and callers take it for a failure.
package history
