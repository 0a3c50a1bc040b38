// Package objectevents receives the events of object stores from a queue of Service Bus, and
// stores them. Package objectjson lists the formats of events.
//
// What it promises:
//
//   - A message is completed only when each of its events is stored, was stored before, is ignored,
//     is older than the retention, or is invalid while other events of the message are valid. Events
//     of the last two kinds are logged and counted; invalid events are counted by their reasons.
//   - A message without any valid event becomes a dead letter; other messages are not affected. The
//     reason of the dead letter is the reason of its first event.
//   - If the store has no space for an event of a message, the message becomes the dead letter
//     partition-full, once its other events are stored. The dead letter contains all its events. If
//     it is sent again, the events that are already stored are duplicates.
//   - A message with events that the store cannot store at present is parked: it stays locked until
//     its events are stored. Its other events are not sent to the store again. Meanwhile other
//     messages are stored, until the parked messages use half of the capacity.
//   - The number and the bytes of the held messages are limited. The other messages stay in the
//     queue.
//
// The state of an object does not depend on the order in which its events are stored. So one
// receiver receives all messages of the queue, and stores the events of several messages together.
//
// When a process ends, its messages stay locked, and their events may be stored already. The bus
// delivers these messages again. Events that are already stored are counted as duplicates, and
// change nothing else.
package objectevents
