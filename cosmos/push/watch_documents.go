package push

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var watchDocument = client.DocumentKind{Name: "watch", Format: 1}

// A watchDoc is the stored form of a repository.Watch. All watches of an owner are in one partition, so a
// query returns them in the order of their ids.
type watchDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	WriteID      string `json:"writeId"`
	Owner        string `json:"owner"`
	Resource     string `json:"resource"` // key of the resource
	CallbackURL  string `json:"callbackUrl"`
	After        int64  `json:"after,omitempty"`
	Created      int64  `json:"created"` // microseconds
	// ETag is the etag of a document that was read. Because it is a member of the document, queries
	// return it too.
	ETag azcore.ETag `json:"_etag,omitempty"`
	client.Document
}

func (*watchDoc) DocumentKind() client.DocumentKind { return watchDocument }

// watchesKey returns the partition key of the watches of an owner. No cursor id begins with a bar, so the
// key differs from every cursor id.
func watchesKey(owner domain.ActorID) string { return "|watches|" + owner.String() }

// set copies all members of a watch.
func (d *watchDoc) set(w *repository.Watch, writeID string) {
	d.ID, d.PartitionKey, d.Kind, d.WriteID = w.ID.String(), watchesKey(w.Owner), watchDocument.Name, writeID
	d.Owner, d.Resource, d.CallbackURL, d.After = w.Owner.String(), w.Resource.Key(), w.CallbackURL, w.After
	d.Created, d.ETag = toMicros(w.Created), ""
}

func (d *watchDoc) toWatch() (*repository.Watch, error) {
	var p documentParser
	w := &repository.Watch{
		ID: parse(&p, d.ID, domain.ParseWatchID), Owner: parse(&p, d.Owner, domain.ParseActorID),
		Resource: parse(&p, d.Resource, domain.ParseResourceKey), CallbackURL: d.CallbackURL, After: d.After,
		Created: fromMicros(d.Created), Version: repository.WatchVersion(d.ETag),
	}
	if p.err != nil {
		return nil, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return w, nil
}
