package push

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The kinds of documents of resources. Each document stores the name of its kind in the member "kind".
var (
	resourceDocument = client.DocumentKind{Name: "resource", Format: 1}
	changeDocument   = client.DocumentKind{Name: "change", Format: 1}
	turnDocument     = client.DocumentKind{Name: "turn", Format: 1}
)

const (
	turnsKey    = "|turns" // a partition key that differs from every cursor id, because no cursor id begins with a bar
	changesTurn = "changes"
)

// A turnDoc records when a node last searched for unpublished changes.
type turnDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Taken        int64  `json:"taken"` // microseconds
	client.Document
}

func (*turnDoc) DocumentKind() client.DocumentKind { return turnDocument }

const resourceID = "resource"

// A resourceDoc is the stored form of a repository.Resource. After a deletion, it still records the last
// version of the resource and whether the resource is watched.
type resourceDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	WriteID      string `json:"writeId"`
	IsAbsent     bool   `json:"absent,omitempty"`
	Content      string `json:"content,omitempty"` // version of the content: the id of the write that stored it
	Body         string `json:"body,omitempty"`    // JSON
	Changed      int64  `json:"changed,omitempty"` // microseconds
	watchedMark
	client.Document

	etag azcore.ETag
}

func (*resourceDoc) DocumentKind() client.DocumentKind { return resourceDocument }

// A watchedMark records whether a resource is watched, and the version of its last change.
type watchedMark struct {
	IsWatched bool  `json:"watched,omitempty"`
	Changes   int64 `json:"changes,omitempty"` // version of the last change
}

// A resourceChangeDoc is the stored form of a domain.Change that is not published yet. It is written in
// one batch with the changed resource, and deleted after the change was appended to the stream of the
// resource.
type resourceChangeDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Resource     string `json:"resource"` // key of the resource
	Version      int64  `json:"version"`
	Event        string `json:"event"`
	At           int64  `json:"at"` // microseconds
	client.FormatNumber
}

func (*resourceChangeDoc) DocumentKind() client.DocumentKind { return changeDocument }

// resourceKey returns the partition key of a client's document and of its changes. No cursor id begins
// with a bar, so the key differs from every cursor id.
func resourceKey(r domain.Resource) string { return "|resource|" + r.Name() }

// A watchable is the location of the document of a resource that can be watched. The changes of the
// resource are stored in the same partition.
type watchable struct {
	key, id  string
	kind     client.DocumentKind
	ifExists string // patch condition under which the resource exists; empty if the resource exists whenever its document does
}

// watchableOf returns the location of the document of a resource. It fails for a bundle, because the
// documents of bundles are in other containers.
func watchableOf(r domain.Resource) (watchable, error) {
	switch r.Kind() {
	case domain.KeptResource:
		return watchable{resourceKey(r), resourceID, resourceDocument, "(NOT IS_DEFINED(c.absent) or c.absent = false)"}, nil
	case domain.PartyResource:
		party, err := r.Party()
		return watchable{listKey(party.List()), party.String(), partyDocument, ""}, err
	case domain.SubscriptionResource:
		id, err := r.Subscription()
		return watchable{
			id.Cursor().String(), definitionID, definitionDocument,
			"(NOT IS_DEFINED(c.state) or c.state = '') and c.owner = '" + r.Actor().String() + "'",
		}, err
	case domain.ObjectResource:
		return watchable{}, domain.Errorf(domain.Unavailable, "the hub keeps no objects; run messagehub provision, and restart the hub")
	default:
		return watchable{}, domain.Errorf(domain.Invalid, "%s cannot be watched here", r)
	}
}

// changeID returns a document id that sorts by version, after the ids of parties.
func (w *watchable) changeID(version int64) string {
	return fmt.Sprintf("|change|%s|%020d", w.id, version)
}

func newResourceDoc(r domain.Resource) *resourceDoc {
	return &resourceDoc{ID: resourceID, PartitionKey: resourceKey(r), Kind: resourceDocument.Name, IsAbsent: true}
}

func (w *watchable) newChangeDoc(c *domain.Change) *resourceChangeDoc {
	return &resourceChangeDoc{
		ID: w.changeID(c.Version), PartitionKey: w.key, Kind: changeDocument.Name,
		Resource: c.Resource.Key(), Version: c.Version, Event: string(c.Event), At: toMicros(c.At),
	}
}

func (d *resourceChangeDoc) change() (domain.Change, error) {
	var p documentParser
	c := domain.Change{
		Resource: parse(&p, d.Resource, domain.ParseResourceKey), Version: d.Version,
		Event: parse(&p, d.Event, domain.ParseChangeEvent), At: fromMicros(d.At),
	}
	if p.err != nil {
		return c, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return c, nil
}

// resource converts d to the resource r with its stored content.
func (d *resourceDoc) resource(r domain.Resource) *repository.Resource {
	return &repository.Resource{
		Resource: r, Body: []byte(d.Body), Changed: fromMicros(d.Changed), Version: repository.ResourceVersion(d.Content),
	}
}
