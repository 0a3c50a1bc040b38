package push

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// PutParty implements [repository.Parties].
func (s *Store) PutParty(ctx context.Context, p *repository.Party) (repository.PartyVersion, error) {
	c := s.client.Begin("put party")
	writeID := s.client.NewID()
	var version repository.PartyVersion
	isRead, misses := p.Version != "", 0 // a new party is read only if its creation was refused
	err := c.Retry(ctx, func() (err error) {
		doc := &partyDoc{}
		if isRead {
			doc, err = s.readParty(ctx, c, p.ID)
		}
		switch {
		case client.IsNotFound(err) && p.Version != "":
			return s.confirmNoParty(ctx, c, p.ID)
		case err != nil && !client.IsNotFound(err):
			return err
		case doc.WriteID == writeID:
			version = repository.PartyVersion(doc.ETag)
			return nil
		case doc.ETag != azcore.ETag(p.Version):
			return s.changedError(c, &misses)
		}
		w := &watchedWrite{resource: domain.PartyOf(p.ID), etag: doc.ETag, doc: doc, mark: &doc.watchedMark}
		if doc.ETag != "" {
			w.event = domain.ResourceUpdated
		}
		doc.set(p, writeID)
		etag, err := s.replaceWatched(ctx, c, w)
		isRead = true
		if client.IsRefused(err) {
			return client.ErrStale
		}
		version = repository.PartyVersion(etag)
		return err
	})
	return version, c.Outcome("put "+p.ID.String()+" in "+p.ID.List().String(), err)
}

// readParty reads the document of a party.
func (s *Store) readParty(ctx context.Context, c *client.Call, id domain.PartyID) (*partyDoc, error) {
	d := &partyDoc{}
	_, err := c.Read(ctx, s.cursors, listKey(id.List()), id.String(), d)
	return d, err
}

// confirmNoParty is called for a party that was not found. It returns a NotFound error, or
// [client.ErrNotYetVisible] if the read was stale.
func (s *Store) confirmNoParty(ctx context.Context, c *client.Call, id domain.PartyID) error {
	gone, err := s.isGone(ctx, c, s.cursors, listKey(id.List()), id.String())
	if err == nil && !gone {
		err = client.ErrNotYetVisible
	}
	if err != nil {
		return err
	}
	return domain.Errorf(domain.NotFound, "there is no %s in %s", id, id.List())
}

// Party implements [repository.Parties].
func (s *Store) Party(ctx context.Context, id domain.PartyID) (*repository.Party, error) {
	c := s.client.Begin("read party")
	var found *repository.Party
	err := c.Retry(ctx, func() error {
		doc, err := s.readParty(ctx, c, id)
		if client.IsNotFound(err) {
			return s.confirmNoParty(ctx, c, id)
		}
		if err == nil {
			found, err = doc.toParty(id.List())
		}
		return err
	})
	return found, c.Outcome("read "+id.String()+" in "+id.List().String(), err)
}

// Parties implements [repository.Parties].
func (s *Store) Parties(ctx context.Context, list domain.PartyList, first string, limit int) ([]*repository.Party, error) {
	if limit <= 0 {
		return nil, nil
	}
	c := s.client.Begin("list parties")
	docs, err := client.All[partyDoc](ctx, c.Query(s.cursors, listKey(list),
		fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.id >= @first AND c.id < '|' ORDER BY c.id", limit),
		azcosmos.QueryParameter{Name: "@first", Value: first}))
	var found []*repository.Party
	for i := range docs {
		if err != nil {
			break
		}
		var p *repository.Party
		if p, err = docs[i].toParty(list); err == nil {
			found = append(found, p)
		}
	}
	return found, c.Outcome("list "+list.String(), err)
}
