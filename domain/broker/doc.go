// Package broker has the use cases of the webhook broker: producers send messages to channels,
// and the broker delivers each message to every consumer of its channel.
//
// A channel is a stream, and a consumer is a cursor. So a broadcast is one write, for any number
// of consumers. A delivery of a message to a consumer is a job. A job has no document until an
// attempt fails; its status is computed on request:
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
// jobs: first the jobs that failed, then the jobs that were not tried. It returns the same bundle
// until the bundle is dequeued, and the hub does not call the consumer with the messages of the
// bundle. A job whose call is under way is in no bundle. If the node dies during the call, the
// message may arrive both by the call and in a bundle, just as it may arrive by two calls. The
// owner of the consumer's cursor makes the bundle, so any node can serve the request.
//
// # Consumers
//
// A PUT of a new consumer reads the end of the stream, stores the consumer with this end, and then
// creates its cursor there. So the consumer gets each message that is accepted after the response
// to its PUT, and no message from before the PUT. A crash between the two writes leaves a consumer
// without a cursor. A repeated PUT creates the cursor at the same position.
//
// # Access
//
// Changes of parties require the token of the operators. The caller has verified this token;
// [Credentials] has the result. Tokens of producers and channels are stored as digests, because
// they are only compared. Tokens of consumers are encrypted, because calls contain them. All tokens are
// compared in constant time. A party that does not exist and a wrong token result in the same
// error, [ErrForbidden], unless the caller may know the difference. Parties are cached for a few
// seconds, so a token that was replaced is refused within five seconds by every node, and
// immediately by the node that replaced it.
//
// # Answers to the open questions of the specification
//
//   - The id of a message is optional. If a message with an id is sent again within 24 hours,
//     it gets the same answer as the first time; other content with the same id is a conflict.
//     Producers should derive ids from their own data: then they can send a message again after
//     a crash.
//   - Deliveries are signed by the scheme of Standard Webhooks with the token of the consumer, and
//     carry the token, too.
//   - The delay after which the fail-safe acts is 2 seconds by default. Only the worker of the
//     fail-safe uses it: it asks for overdue jobs ([Service.Overdue]) where nodes do not take
//     over automatically. By default, nodes take over from dead nodes within 10 seconds, without
//     the worker.
//   - The delivery timeout is the same as for all calls, 30 seconds by default.
//   - A job is retried 5 times by default. The first pause is 5 seconds, and each further pause is
//     twice as long, varied by a fifth. After the last retry the job is Dead. A response with
//     Retry-After holds the consumer for the time that it states.
package broker
