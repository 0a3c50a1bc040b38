package cosmos

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A foundBundleDoc is the document of a bundle, with the time of its last write.
type foundBundleDoc struct {
	bundleDoc
	Modified int64 `json:"_ts"` // seconds
}

func (d *foundBundleDoc) foundBundle(isFrozen bool) (repository.FoundBundle, error) {
	b, err := d.toBundle()
	found := repository.FoundBundle{Bundle: b, State: repository.BundleState(d.State), Frozen: isFrozen}
	if d.State != stateOpen {
		found.Closed = time.Unix(d.Modified, 0).UTC()
	}
	return found, err
}

// FindBundle implements [repository.Finder]. With a recipient, it makes a point read. Otherwise it queries
// all partitions by the id, which Cosmos indexes.
func (r *Repository) FindBundle(ctx context.Context, id domain.BundleID, recipient domain.ActorID, limit int) (repository.BundleSearch, error) {
	c := r.beginCall("find bundle")
	docs, search, err := c.findBundleDocs(ctx, id, recipient, limit+1)
	slices.SortFunc(docs, func(a, b *foundBundleDoc) int { return cmp.Compare(a.Recipient, b.Recipient) })
	for _, doc := range docs {
		if len(search.Found) == limit {
			search.HasMore = true
			break
		}
		found, damage := doc.foundBundle(false)
		if damage != nil {
			search.Unread = append(search.Unread, repository.UnreadMailbox{Recipient: doc.Recipient, Reason: damage.Error()})
			continue
		}
		if err == nil && found.State == repository.BundleOpen {
			gates := make(map[domain.Group]*gate)
			err = c.readGates(ctx, found.Cabinet.Recipient, r.opts.Groups.All(), gates)
			if isOfMailbox(err) { // the bundle was found, although its mailbox cannot be read completely
				reason := client.Classify("read the gates of the mailbox", err).Error()
				search.Unread = append(search.Unread, repository.UnreadMailbox{Recipient: doc.Recipient, Reason: reason})
				err = nil
			}
			found.Frozen = anyFrozen(gates)
		}
		search.Found = append(search.Found, found)
	}
	if err != nil {
		return repository.BundleSearch{}, client.Classify("find bundle "+id.String(), err)
	}
	return search, nil
}

// findBundleDocs returns up to limit bundles with an id. search lists the bundles that cannot be read.
func (c *call) findBundleDocs(ctx context.Context, id domain.BundleID, recipient domain.ActorID, limit int) (docs []*foundBundleDoc, search repository.BundleSearch, err error) {
	decode := func(name string, err error, doc *foundBundleDoc) error {
		switch {
		case isOfMailbox(err):
			search.Unread = append(search.Unread, repository.UnreadMailbox{Recipient: name, Reason: err.Error()})
			return nil
		case err == nil:
			docs = append(docs, doc)
		}
		return err
	}
	if !recipient.IsZero() {
		doc := &foundBundleDoc{}
		_, err := c.Read(ctx, c.r.db.bundles, recipient.String(), id.String(), doc)
		if client.IsNotFound(err) {
			return nil, search, nil
		}
		err = decode(recipient.String(), err, doc)
		return docs, search, err
	}
	q := c.QueryAllPartitions(c.r.db.bundles, id.String(), "SELECT * FROM c WHERE c.id = @id", azcosmos.QueryParameter{Name: "@id", Value: id.String()})
	for !q.IsDone() && len(docs) < limit {
		items, err := q.Next(ctx, limit)
		if q.SkipDamage(err) {
			search.Unread = append(search.Unread, repository.UnreadMailbox{Recipient: client.FailureOf(err).DamagedPartition(), Reason: err.Error()})
			continue
		}
		if err != nil {
			return nil, search, err
		}
		for _, item := range items {
			doc := &foundBundleDoc{}
			err := q.Decode(item, doc)
			if err := decode(doc.Recipient, err, doc); err != nil {
				return nil, search, err
			}
		}
	}
	return docs, search, nil
}
