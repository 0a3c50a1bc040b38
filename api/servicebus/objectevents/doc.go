// Package objectevents receives the events of object stores from a queue of Service Bus, and
// stores them. Package objectjson lists the forms of events.
//
// What it promises:
//
//   - A message is completed only when each of its events is stored, was stored before, is ignored,
//     is older than the retention, or is one that can never be stored while others of the message are.
//     Events of the last two kinds are logged and counted, those that can never be stored by their reasons.
//   - A message of which no event can be stored becomes a dead letter, alone. Its reason is that
//     of its first event.
//   - A message with an event for which the store has no room becomes the dead letter
//     partition-full, once its other events are stored. The dead letter has all of them; those
//     are duplicates when it is sent again.
//   - A message with events that the store cannot store for the moment is held, locked, until it
//     can. Its other events are not sent to the store again, and other messages are stored
//     meanwhile, until those that are held take half of the room.
//   - The messages that are held are bounded, in number and bytes. Others stay in the queue.
//
// Events may be stored in any order, since the state of an object does not depend on it. So one
// receiver takes all received messages, and stores their events together.
//
// A process that ends leaves messages locked, and perhaps stored. The bus delivers them again; then their
// events are counted as duplicates, and change nothing else.
package objectevents
