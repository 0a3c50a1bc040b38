// Package contract has the messages between the hub and the domains over Service Bus
// (contract.proto and the Go code generated from it), and all names around them. It promises to
// equal the original MessageHub's contract byte for byte, so that clients of the original keep
// working. Other packages send and receive: the hub's side is package servicebus, the domains'
// side is package domainclient.
//
// A domain is the part of the energy market that data comes from, and its name is
// its origin. An actor is who the data is for. The original calls the origin
// Aggregations by the name Wholesale ([WireOrigin]).
//
// # A domain announces data
//
//	domain ── DataAvailable ──▶ dataavailable-fifo   session id = recipient
//	                      or ─▶ dataavailable        no session
//
// The body says by its content type what it is: a
// [DataAvailableNotificationContract] ([Protobuf], and also if there is no content
// type), or one event or many in JSON ([JSON], [CloudEvent], [CloudEventBatch]).
// Both queues take every form. On the first, events of one recipient keep their
// order; the second is for the original's senders, which set no session, and keeps
// no promise of order.
//
// A domain that is not sure whether an event arrived sends it again with the same
// UUID, and the hub takes it once. The message id is the sender's own business. A
// message that the hub can never use goes to the dead letters of its queue, with a
// reason and a description; one that it cannot take just now stays.
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
// only, and refuses a URI of another account or container. It never dials what a URI says. A
// signature in the URI is neither used nor passed on; leave it out.
//
// # The hub says that it is done
//
//	hub ── Dequeue ──▶ <domain>-dequeue   no session
//	                                      DataAvailableNotificationReferenceId = ids
//	                                      message id = the bundle's process id
//
// The actor holds the bundle safely, and the domain may forget it. The notice comes at least
// once. A repeated notice has the same message id.
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
