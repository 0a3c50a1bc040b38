// Package contract has the messages between the hub and the domains over Service Bus
// (contract.proto and the Go code generated from it), and the names of queues and properties. It
// equals the contract of the original MessageHub byte for byte, so that clients of the original
// keep working. Package servicebus sends and receives the messages for the hub, and package
// domainclient for domains.
//
// A domain is a part of the energy market from which data comes; its name is the
// origin. An actor is a recipient of data. The original calls the origin
// Aggregations by the name Wholesale ([WireOrigin]).
//
// # A domain announces data
//
//	domain ── DataAvailable ──▶ dataavailable-fifo   session id = recipient
//	                      or ─▶ dataavailable        no session
//
// The content type tells what the body is: a
// [DataAvailableNotificationContract] ([Protobuf], and also if there is no content
// type), or one event or many in JSON ([JSON], [CloudEvent], [CloudEventBatch]).
// Both queues take every form. On the first, events of one recipient keep their
// order; the second is for senders of the original, which set no session, and has no
// order.
//
// A domain that is not sure whether an event arrived sends it again with the same
// UUID, and the hub stores it once. The sender may choose any message id. A message
// that can never be stored becomes a dead letter of its queue, with a reason and a
// description; one that cannot be stored now stays in the queue.
//
// # The hub asks for content
//
// When an actor peeks, the hub asks the domain for the content of the bundle. ids
// is a blob that the hub has left in the container it shares with the domain: 16
// bytes an event, as .NET writes a GUID ([DecodeIDs]).
//
//	hub ──── RequestDataBundle ──▶ <domain>         session id = reply-to session id = RequestId
//	                                                reply-to = <domain>-reply
//	                                                DataAvailableNotificationReferenceId = ids
//	                                                time to live = what is left of 30 s
//	domain   reads ids, writes a blob with the content
//	domain ─ DataBundleResponse ─▶ <domain>-reply   session id = RequestId
//	                                                Success.contentUri, or Failure
//	                                                time to live 30 s
//
// RequestId is a new GUID with each attempt. IdempotencyId stays the same for one bundle: a
// domain that is asked again may write the same blob again ([ContentName] is where the
// original's domains put it) and answer with the same URI. Asking again is normal, since the
// actor's own request may end before the reply comes; so an answer may come late or twice, and
// the first that the hub stores counts. The hub looks for the blob in the shared container
// only, and refuses a URI of another account or container. It never connects to the host
// in a URI. A signature in the URI is not used, so leave it out.
//
// # The hub notifies the domain
//
//	hub ── Dequeue ──▶ <domain>-dequeue   no session
//	                                      DataAvailableNotificationReferenceId = ids
//	                                      message id = the bundle's process id
//
// The actor has confirmed the bundle, and the domain may delete its data. The notice comes at
// least once. A repeated notice has the same message id.
//
// # Every message
//
// carries the application properties that [Properties] makes. The correlation id is
// the IdempotencyId in a request and its reply, and the process id in a notice:
// "<bundle>_<actor>", both as lower-case GUIDs where they are GUIDs.
//
// # Regenerating
//
// contract.pb.go is made from contract.proto by make generate, and make lint checks
// that it was.
package contract

//go:generate go -C ../../../.ci/tools run ./protobuf api/servicebus/contract/contract.proto
