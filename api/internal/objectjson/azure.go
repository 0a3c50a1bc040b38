package objectjson

import (
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// What Azure calls events of blobs.
const (
	blobCreated     = "Microsoft.Storage.BlobCreated"
	blobDeleted     = "Microsoft.Storage.BlobDeleted"
	blobTierChanged = "Microsoft.Storage.BlobTierChanged"
	blobRenamed     = "Microsoft.Storage.BlobRenamed"

	validateSubscription = "Microsoft.EventGrid.SubscriptionValidationEvent"
)

// reasonsOfAzure has the operations that create blobs. Those that begin to write a file are not
// events of ours: see the comment of the package.
var reasonsOfAzure = map[string]domain.ObjectReason{
	"PutBlob":        domain.CreatedPut,
	"PutBlobFromURL": domain.CreatedCopy,
	"PutBlockList":   domain.CreatedCompleteMultipartUpload,
	"CopyBlob":       domain.CreatedCopy,
	"FlushWithClose": domain.CreatedPut,
	"SftpCommit":     domain.CreatedPut,
}

// beginsFile reports whether an operation begins to write a file, which another event ends.
func beginsFile(api string) bool { return api == "CreateFile" || api == "SftpCreate" }

// isOfBlob reports whether events with a name are of blobs.
func isOfBlob(name string) bool {
	return name == blobCreated || name == blobDeleted || name == blobTierChanged || name == blobRenamed
}

// An azureEvent is what Event Grid says about a blob, in its own form or as a CloudEvent.
type azureEvent struct {
	name                       string
	topic, subject, time, data *node
	id                         string // among all events of the topic; "": unknown
}

// eventGrid reads an event in the form of Event Grid.
func (p *parser) eventGrid(n *node) {
	e, name := n.event, n.get("eventType").value()
	switch {
	case e.fault != nil:
	case name == validateSubscription:
		p.handshake(n)
	case !isOfBlob(name):
		e.ignore(name)
	default:
		(&azureEvent{
			name: name, topic: n.get("topic"), subject: n.get("subject"), time: n.get("eventTime"), data: n.object("data"),
			id: n.get("id").optional(),
		}).read(e)
	}
}

// handshake reads the question whether events are welcome.
func (p *parser) handshake(n *node) {
	code := n.object("data").get("validationCode")
	p.events.Handshake = &Handshake{code.value()}
	if p.events.Handshake.Code == "" {
		code.fail(MissingField, "validationCode: want the code that is the answer")
	}
	n.event.ignore(validateSubscription)
}

// read reads the event into e.
func (a *azureEvent) read(e *event) {
	api := a.data.get("api").optional()
	if a.name == blobCreated && beginsFile(api) {
		e.ignore(a.name + " " + api)
		return
	}
	bucket, key := a.blob()
	c := change{
		bucket: bucket, bucketAt: a.topic, key: key, keyAt: a.subject,
		ObjectEvent: domain.ObjectEvent{
			Type: domain.ObjectCreated, Sequencer: a.data.get("sequencer").sequencer(domain.OpaqueSequencer), Time: a.time.time(),
			ObjectFacts: domain.ObjectFacts{
				Size: a.data.get("contentLength").size(), ETag: a.data.get("eTag").etag(), StorageClass: a.data.get("accessTier").optional(),
				Reason: domain.UnknownReason,
			},
		},
	}
	switch a.name {
	case blobDeleted:
		c.Type, c.Reason = domain.ObjectDeleted, domain.DeletedByRequest
	case blobTierChanged:
		c.Reason = domain.StorageClassChanged
	case blobRenamed:
		a.addSource(e, c)
		c.Reason = domain.CreatedCopy
	default:
		if reason, ok := reasonsOfAzure[api]; ok {
			c.Reason = reason
		}
	}
	e.add(c, a.ownID())
}

// ownID returns an identity of the event, "" if it has none.
func (a *azureEvent) ownID() string {
	if a.id == "" {
		return ""
	}
	return strings.Join([]string{"azure", a.topic.optional(), a.id}, "\n")
}

// blob returns the bucket and the key of the blob, by the topic and the subject.
func (a *azureEvent) blob() (bucket, key string) {
	topic, subject := a.topic.value(), a.subject.value()
	const accounts, containers, blobs = "/storageaccounts/", "/blobServices/default/containers/", "/blobs/"
	// The topic is the id of a resource, of which the case has no meaning.
	_, account, isAccount := strings.Cut(strings.ToLower(topic), accounts)
	account, _, _ = strings.Cut(account, "/")
	if !isAccount || account == "" {
		a.topic.fail(InvalidSubject, "%s: want the id of a storage account, got %q", a.topic.name, domain.Clip(topic))
	}
	rest, isBlob := strings.CutPrefix(subject, containers)
	container, key, hasKey := strings.Cut(rest, blobs)
	if !isBlob || !hasKey || container == "" || key == "" || strings.Contains(container, "/") {
		a.subject.fail(InvalidSubject, "subject: want %sCONTAINER%sBLOB, got %q", containers, blobs, domain.Clip(subject))
	}
	return account + "/" + container, key
}
