// Package objectjson reads the events that object stores report, in each of these forms:
//
//	S3            {"Records": [{"eventName", "s3", …}]}, and each record alone
//	EventBridge   {"detail-type": "Object Created", "detail", …}
//	SNS           {"Type": "Notification", "Message": "…"}, and {"Records": [{"Sns": …}]}
//	SQS           {"Records": [{"messageId", "body": "…"}]}, {"Messages": […]}, and each message alone
//	Event Grid    {"eventType": "Microsoft.Storage.BlobCreated", "subject", "data", …}
//	CloudEvents   {"specversion", "type", "data", …}, and in the binary mode
//
// An array may hold any of them. The text in a message of SNS or SQS is read in the same way, so SNS
// in SQS is, too. The form of an event is recognized by its members, not by the message that has it.
//
// # Faults
//
// Each event is read separately. One that cannot be stored is a [Fault]: its index among all events
// of the text, a JSON pointer, and a reason, which is a word that never changes its meaning. It does
// not affect the others. A pointer continues into the text of a message as if that were JSON and no
// string: /Records/0/body/Records/2/s3/object/key. An event has the first fault that is found.
//
// An event with a name that says nothing about the existence or the class of an object is ignored,
// and counted: tags, access lists, replication, a restore that begins, a test event, directories,
// and names that this version does not know. So is BlobCreated of CreateFile and SftpCreate: the
// content of the file is complete with FlushWithClose or SftpCommit, which has an event of its own.
//
// Only text whose brackets and quotes do not match fails as a whole: it has no elements then.
//
// # Names
//
// The bucket of a blob is ACCOUNT/CONTAINER, so that containers with the same name in two accounts
// are two buckets. The topic (or source) has the account, and the subject has
// the container and the key, which are not encoded. A BlobRenamed is two events: the source was deleted, and
// the destination was created; see azure_rename.go.
//
// The key of a direct notification of S3 is encoded like a form: + is a space and %2B a plus. It
// is decoded here. EventBridge sends the key as it is. An empty object whose key ends in / is
// treated like others: a listing of the bucket has it, so a crawl would add it again.
//
// # Sequencers
//
// A sequencer is not required. An event without one is identified by its delivery: the id of
// the event (EventBridge, Event Grid, CloudEvents), otherwise the id of the message of SNS or
// SQS that carried it, and its place there, otherwise [Options.MessageID] and a digest of the text, and
// its place.
package objectjson
