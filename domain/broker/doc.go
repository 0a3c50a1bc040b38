// Package broker has the use cases of the webhook broker: producers send messages to channels,
// and the broker delivers each message to every consumer of its channel.
//
// A channel is a stream and a consumer a cursor, so a broadcast is one write, for any number of
// consumers. A delivery of a message to a consumer is a job. It has no document until it fails;
// its status is computed on request:
//
//	position of the message       stored retry      status of the job
//	after the cursor              none              In-flight: it waits for its first attempt
//	taken, open                   none              In-flight
//	taken, in a bundle            none              In-flight
//	taken                         waits             Retry-Delivery
//	taken                         is called here    Retry-In-flight
//	taken, in a bundle            waits             Retry-In-flight
//	taken                         a dead letter     Dead
//	taken                         none              Delivered, or Ended
//
// A dead letter is removed after 14 days, and its message may be stored for longer. So a job
// without a stored retry is Ended instead of Delivered if its message is older and its consumer
// has had dead letters: it is not known whether the job was Delivered or Dead. A job is also
// Dead while the cursor remembers that the message was removed before the cursor had taken it.
//
// A message is Acknowledged until every consumer that was registered before it has taken it, then
// Out-for-delivery.
//
// # Fetching messages
//
// A consumer may also fetch messages by Peek and Dequeue. Peek returns a bundle of waiting
// jobs: first those that failed, then those that were not tried. It returns the same bundle
// until the bundle is dequeued, and the consumer is not called with its messages. A job that is
// being called is in no bundle. If the node dies during the call, the message may arrive both
// by the call and in a bundle, just as it may arrive by two calls. The owner of the consumer's
// cursor makes the bundle, so any node can be asked.
//
// # Consumers
//
// A consumer is stored with the end of the stream as it was before, and then its cursor begins
// there: it gets each message that is accepted after the response to its PUT, and no message
// from before the PUT. A crash between the two writes leaves a consumer without a cursor, which
// a repeated PUT creates at the same place.
//
// # Access
//
// Managing needs the token of the operators, which the caller has verified; [Credentials] has
// the result. Tokens of producers and channels are stored as digests, because they are only
// compared; those of consumers are sealed, because calls carry them. All are compared in
// constant time. A party that does not exist and a wrong token result in the same error,
// [ErrForbidden], unless the caller may know the difference. Parties are cached for a few
// seconds, so a token that was replaced is refused within five seconds by every node, and
// immediately by the one that replaced it.
//
// # Answers to the open questions of the specification
//
//   - The id of a message is optional. If a message with an id is sent again within 24 hours,
//     it gets the same answer as the first time; other content with the same id is a conflict.
//     Producers should derive ids from their own data: then they can send a message again after
//     a crash.
//   - Deliveries are signed by the scheme of Standard Webhooks with the token of the consumer, and
//     carry the token, too.
//   - The rational delay of the fail-safe is 2 seconds by default. Only the worker of the
//     fail-safe uses it: it asks for overdue jobs ([Service.Overdue]) where nodes do not take
//     over automatically. By default, nodes take over from dead ones within 10 seconds, and
//     there is no polling.
//   - The delivery timeout is the same as for all calls, 30 seconds by default.
//   - A job is retried 5 times by default, after 5 seconds and twice as long each time, varied by
//     a fifth; then it is Dead. An answer with Retry-After holds the consumer for as long.
package broker
