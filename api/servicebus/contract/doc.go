// Package contract defines the messages between the hub and the domains over Service Bus
// (contract.proto and the Go code generated from it), and the names of queues and properties. The
// messages equal those of the original MessageHub byte for byte, so that clients of the original
// keep working. Package servicebus sends and receives the messages for the hub, and package
// domainclient for domains.
//
// A domain is a part of the energy market that produces data; its name is the
// origin. An actor is a recipient of data. The origin Aggregations has the name
// Wholesale in messages, as in the original ([WireOrigin]).
//
// # A domain announces data
//
//	domain ── DataAvailable ──▶ dataavailable-fifo   session id = recipient
//	                      or ─▶ dataavailable        no session
//
// The content type determines the format of the body: a
// [DataAvailableNotificationContract] ([Protobuf], or a missing content type), or
// one or more events in JSON ([JSON], [CloudEvent], [CloudEventBatch]). Both queues
// accept every format. In the queue with sessions, the events of one recipient keep
// their order. The queue without sessions has no order; it is for senders of the
// original, which set no session.
//
// A domain that is not sure whether an event arrived sends it again with the same
// UUID, and the hub stores it once. The sender may choose any message id. A message
// that can never be stored becomes a dead letter of its queue, with a reason and a
// description. A message that cannot be stored at present stays in the queue.
//
// # The hub asks for content
//
// When an actor peeks, the hub requests the content of the bundle from the domain.
// In the diagram, ids is a blob that the hub has written to the container that it
// shares with the domain. It has 16 bytes for each event: the id as .NET writes a
// GUID ([DecodeIDs]).
//
//	hub ──── RequestDataBundle ──▶ <domain>         session id = reply-to session id = RequestId
//	                                                reply-to = <domain>-reply
//	                                                DataAvailableNotificationReferenceId = ids
//	                                                time to live = the rest of 27 s
//	domain   reads ids, writes a blob with the content
//	domain ─ DataBundleResponse ─▶ <domain>-reply   session id = RequestId
//	                                                Success.contentUri, or Failure
//	                                                time to live 30 s
//
// RequestId is a new GUID for each attempt. IdempotencyId is the same for all attempts of one
// bundle, so a domain may write the same blob again (original domains name it [ContentName])
// and reply with the same URI. Repeated requests are normal, because the actor's Peek may end
// before the reply arrives. A reply may therefore arrive late or twice, and the hub uses the
// content that it stores first. The hub reads the blob only from the shared container, and
// refuses a URI of another account or container. It never connects to the host in a URI. The
// hub ignores a signature in the URI, so leave it out.
//
// # The hub notifies the domain
//
//	hub ── Dequeue ──▶ <domain>-dequeue   no session
//	                                      DataAvailableNotificationReferenceId = ids
//	                                      message id = the bundle's process id
//
// The actor has confirmed the bundle, and the domain may delete its data. The notice is
// delivered at least once. A repeated notice has the same message id.
//
// # Every message
//
// Every message carries the application properties that [Properties] returns. The
// correlation id of a request and its reply is the IdempotencyId. The correlation
// id of a notice is the process id: "<bundle>_<actor>". A GUID in it is lower-case.
//
// # Regenerating
//
// make generate writes contract.pb.go from contract.proto, and make lint checks that
// contract.pb.go is up to date.
package contract

//go:generate go -C ../../../.ci/tools run ./protobuf api/servicebus/contract/contract.proto
