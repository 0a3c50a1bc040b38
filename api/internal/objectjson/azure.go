package objectjson

import (
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// Names of Azure's events about blobs.
const (
	blobCreated     = "Microsoft.Storage.BlobCreated"
	blobDeleted     = "Microsoft.Storage.BlobDeleted"
	blobTierChanged = "Microsoft.Storage.BlobTierChanged"
	blobRenamed     = "Microsoft.Storage.BlobRenamed"

	validateSubscription = "Microsoft.EventGrid.SubscriptionValidationEvent"
)

// reasonsOfAzure contains the reason for each operation that creates a blob. It omits operations that
// only begin to write a file, because their events are ignored; see the package comment.
var reasonsOfAzure = map[string]domain.ObjectReason{
	"PutBlob":        domain.CreatedPut,
	"PutBlobFromURL": domain.CreatedCopy,
	"PutBlockList":   domain.CreatedCompleteMultipartUpload,
	"CopyBlob":       domain.CreatedCopy,
	"FlushWithClose": domain.CreatedPut,
	"SftpCommit":     domain.CreatedPut,
}

// beginsFile reports whether an operation begins to write a file. A later event reports that the
// file is complete.
func beginsFile(api string) bool { return api == "CreateFile" || api == "SftpCreate" }

// isOfBlob reports whether events called name are about blobs.
func isOfBlob(name string) bool {
	return name == blobCreated || name == blobDeleted || name == blobTierChanged || name == blobRenamed
}

// An azureEvent is an event about a blob, in the format of Event Grid or of CloudEvents.
type azureEvent struct {
	name                       string
	topic, subject, time, data *jsonNode
	id                         string // id that is unique within the topic; "" if unknown
}

// readEventGrid reads an event in the format of Event Grid.
func (p *messageParser) readEventGrid(n *jsonNode) {
	e, name := n.event, n.findMember("eventType").stringValue()
	switch {
	case e.fault != nil:
	case name == validateSubscription:
		p.readHandshake(n)
	case !isOfBlob(name):
		e.markIgnored(name)
	default:
		(&azureEvent{
			name: name, topic: n.findMember("topic"), subject: n.findMember("subject"), time: n.findMember("eventTime"), data: n.objectMember("data"),
			id: n.findMember("id").optionalString(),
		}).readInto(e)
	}
}

// readHandshake reads the validation request of Event Grid.
func (p *messageParser) readHandshake(n *jsonNode) {
	code := n.objectMember("data").findMember("validationCode")
	p.events.Handshake = &Handshake{code.stringValue()}
	if p.events.Handshake.Code == "" {
		code.reportFault(MissingField, "validationCode: want the code that is the answer")
	}
	n.event.markIgnored(validateSubscription)
}

// readInto adds the object changes that the event reports to e.
func (a *azureEvent) readInto(e *parsedEvent) {
	api := a.data.findMember("api").optionalString()
	if a.name == blobCreated && beginsFile(api) {
		e.markIgnored(a.name + " " + api)
		return
	}
	bucket, key := a.blobName()
	c := objectChange{
		bucket: bucket, bucketAt: a.topic, key: key, keyAt: a.subject,
		ObjectEvent: domain.ObjectEvent{
			Type: domain.ObjectCreated, Sequencer: a.data.findMember("sequencer").readSequencer(domain.OpaqueSequencer), Time: a.time.timeValue(),
			ObjectFacts: domain.ObjectFacts{
				Size: a.data.findMember("contentLength").sizeValue(), ETag: a.data.findMember("eTag").readETag(), StorageClass: a.data.findMember("accessTier").optionalString(),
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
	e.addChange(c, a.uniqueID())
}

// uniqueID returns an id of the event that no event of another source has. It returns "" if the
// event has no id.
func (a *azureEvent) uniqueID() string {
	if a.id == "" {
		return ""
	}
	return strings.Join([]string{"azure", a.topic.optionalString(), a.id}, "\n")
}

// blobName returns the bucket and the key of the blob, which it reads from the topic and the
// subject.
func (a *azureEvent) blobName() (bucket, key string) {
	topic, subject := a.topic.stringValue(), a.subject.stringValue()
	const accounts, containers, blobs = "/storageaccounts/", "/blobServices/default/containers/", "/blobs/"
	// The topic is a resource id, which is case-insensitive.
	_, account, isAccount := strings.Cut(strings.ToLower(topic), accounts)
	account, _, _ = strings.Cut(account, "/")
	if !isAccount || account == "" {
		a.topic.reportFault(InvalidSubject, "%s: want the id of a storage account, got %q", a.topic.name, domain.Shorten(topic))
	}
	rest, isBlob := strings.CutPrefix(subject, containers)
	container, key, hasKey := strings.Cut(rest, blobs)
	if !isBlob || !hasKey || container == "" || key == "" || strings.Contains(container, "/") {
		a.subject.reportFault(InvalidSubject, "subject: want %sCONTAINER%sBLOB, got %q", containers, blobs, domain.Shorten(subject))
	}
	return account + "/" + container, key
}
