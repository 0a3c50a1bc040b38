// Package deadletters has the use cases of operators for the dead letters in queues of a
// Service Bus: list them, read one, send them again, and delete them.
//
// It promises:
//
//   - Before dead letters are read, sent again or deleted, a record with the operator and the
//     reason is stored. The outcome is added afterwards.
//   - An action on several dead letters names their reason and the highest number. So it ends
//     even if messages that were sent again become dead letters again.
//   - An action that began to process a dead letter finishes this dead letter, even if the
//     caller has disconnected.
//
// It leaves to others: the port [Bus] gives access to the queues, and defines the state after a
// failure. The configuration decides which queues exist, and which queues accept their dead
// letters again.
//
// What a failure leaves behind: a node that dies during an action leaves a record without an
// outcome. The bus may have carried out a part of the action; a list of the dead letters shows
// which dead letters remain. A dead letter may remain although its copy was sent. If it is sent
// again, there are two copies, and the receiver detects the duplicate by the ids of the events.
package deadletters
