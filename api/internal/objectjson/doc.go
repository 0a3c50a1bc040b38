// Package objectjson reads the events that object stores report, in each of these forms:
//
//	S3            {"Records": [{"eventName", "s3", …}]}, and each record alone
//	EventBridge   {"detail-type": "Object Created", "detail", …}
//	SNS           {"Type": "Notification", "Message": "…"}, and {"Records": [{"Sns": …}]}
//	SQS           {"Records": [{"messageId", "body": "…"}]}, {"Messages": […]}, and each message alone
//	Event Grid    {"eventType": "Microsoft.Storage.BlobCreated", "subject", "data", …}
//	CloudEvents   {"specversion", "type", "data", …}, and in the binary mode
//
// An array may contain all of these forms. The text inside an SNS or SQS message is read like the
// whole text, so an SQS message may contain an SNS message. The package recognizes the form of an
// event by the event's members, not by the message that contains the event.
//
// # Faults
//
// Each event is read separately. An event that cannot be stored becomes a [Fault], and does not affect
// other events. A Fault has the index of the event among all events of the text, a JSON pointer, and a
// reason, which is a word that never changes its meaning. A pointer continues into the text of a
// message as if this text were JSON and not a string: /Records/0/body/Records/2/s3/object/key. Only the
// first fault of an event is reported.
//
// Events that do not concern the existence or the storage class of an object are ignored and counted:
// tags, access lists, replication, the beginning of a restore, test events, directories, and names
// that this version does not know. BlobCreated for CreateFile and SftpCreate is ignored, too: the
// content of the file is complete after FlushWithClose or SftpCommit, which have separate events.
//
// A text fails as a whole only if it is a single value that is not JSON, or if its brackets and
// quotes do not match, because such text cannot be split into events.
//
// # Names
//
// The bucket of a blob is ACCOUNT/CONTAINER, so that containers with the same name in two accounts
// are two buckets. The topic (or source) contains the account. The subject contains the container and
// the key, which are not encoded. A BlobRenamed results in two events: the source was deleted, and the
// destination was created; see azure_rename.go.
//
// In a direct notification from S3, the key is encoded like a form, with + for a space and %2B for
// a plus. The package decodes it. EventBridge does not encode the key. An empty object whose key
// ends with / is stored like other objects: a listing of the bucket contains the object, so a crawl
// would add it anyway.
//
// # Sequencers
//
// A sequencer is not required. An event without a sequencer is identified by the first of these that
// exists:
//
//   - the id of the event (EventBridge, Event Grid, CloudEvents)
//   - the id of the SNS or SQS message that contains the event, and the index of the event in it
//   - [Options.MessageID], a digest of the text, and the index of the event in the text
package objectjson
