package push

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// CreateSubscription implements [repository.Definitions].
func (s *Store) CreateSubscription(ctx context.Context, d *repository.Definition) (*repository.Definition, bool, error) {
	c := s.client.Begin("create subscription")
	a := &creation{store: s, call: c, wanted: d, writeID: s.client.NewID()}
	err := c.Retry(ctx, func() error { return a.tryCreate(ctx) })
	return a.stored, a.created, c.Outcome("create subscription "+d.ID.String(), err)
}

// A creation is the state of one call of CreateSubscription.
type creation struct {
	store   *Store
	call    *client.Call
	wanted  *repository.Definition
	writeID string
	waits   int // number of times that the creation waited for unfinished creations by other nodes

	stored  *repository.Definition
	created bool
}

// maxWaits limits how often a creation waits for unfinished creations by other nodes. Then the creation
// refuses their reservations.
const maxWaits = 4

func (a *creation) tryCreate(ctx context.Context) error {
	s, c, owner := a.store, a.call, a.wanted.Owner
	doc, err := s.readDefinition(ctx, c, a.wanted.ID)
	switch {
	case client.IsNotFound(err):
		doc = &definitionDoc{}
	case err != nil:
		return err
	case doc.State == definitionDeleted:
		return domain.Errorf(domain.Conflict, "a subscription with this id was deleted")
	case doc.isLive() && doc.Owner != owner.String():
		return domain.Errorf(domain.Conflict, "a subscription of another owner has this id")
	case doc.isLive():
		// If the stored subscription equals the owner's draft, no write follows that would detect a stale
		// read. The owner's PUT would then succeed although the subscription was deleted or has changed.
		if err := s.confirmCurrent(ctx, c, definitionDocument, doc.PartitionKey, doc.ID, doc.WriteID); err != nil {
			return err
		}
		a.stored, err = doc.toDefinition()
		a.created = doc.CreatedBy == a.writeID
		return err
	}
	// A crash after this write leaves a reservation without a subscription. If the call is repeated, it
	// uses the reservation. If not, the reservation remains until the owner reaches the limit for
	// reservations; then another creation refuses and removes it.
	reserved, err := a.reserveID(ctx, doc.Refused)
	if err != nil {
		return err
	}
	if slices.Contains(doc.Refused, reserved.refusalText(owner)) {
		return client.ErrStale
	}
	// The document was read before the reservation was made. If the reservation was refused in the
	// meantime, the document has changed, and this write is refused.
	next := &definitionDoc{CreatedBy: a.writeID, Created: toMicros(a.wanted.Created), Document: doc.Document}
	next.set(a.wanted, a.writeID)
	etag, err := c.Put(ctx, s.cursors, next.PartitionKey, definitionID, doc.etag, next)
	if client.IsRefused(err) {
		return client.ErrStale
	}
	if err != nil {
		return err
	}
	next.etag = etag
	a.stored, err = next.toDefinition()
	a.created = true
	return err
}

// reserveID returns the owner's reservation of the wanted id. It stores a new reservation if there is
// none, or if the existing reservation is in refused.
func (a *creation) reserveID(ctx context.Context, refused []string) (reservation, error) {
	owner, err := a.store.readOwner(ctx, a.call, a.wanted.Owner)
	if err != nil {
		return reservation{}, err
	}
	i := slices.IndexFunc(owner.reservations, func(r reservation) bool { return r.id == a.wanted.ID })
	if i >= 0 && !slices.Contains(refused, owner.reservations[i].refusalText(a.wanted.Owner)) {
		return owner.reservations[i], nil
	}
	made := reservation{a.wanted.ID, owner.Next}
	if i >= 0 {
		owner.reservations[i] = made
	} else {
		if len(owner.reservations) >= domain.MaxSubscriptions {
			return made, a.reclaimID(ctx, owner)
		}
		owner.reservations = append(owner.reservations, made)
	}
	owner.Next++
	return made, a.store.writeOwner(ctx, a.call, owner)
}

// reclaimID is called when an owner has the maximum number of reservations. If some reservations have no
// subscription, reclaimID waits a few times, frees these reservations, and returns [client.ErrStale], so
// that the creation starts again. Otherwise it returns an error that wraps
// [repository.ErrSubscriptionLimit].
func (a *creation) reclaimID(ctx context.Context, owner *ownerDoc) error {
	s, c := a.store, a.call
	docs, err := s.readDefinitions(ctx, c, owner.reservations)
	if err != nil {
		return err
	}
	var live, unfinished []reservation
	found := make(map[domain.SubscriptionID]*definitionDoc)
	for i, r := range owner.reservations {
		switch doc := docs[i]; {
		case doc == nil || doc.State == definitionRefused:
			unfinished = append(unfinished, r)
			found[r.id] = doc
		case doc.isLive() && doc.Owner == a.wanted.Owner.String():
			live = append(live, r)
		}
	}
	if len(live) == len(owner.reservations) {
		if s.account.ReadsMayBeStale() {
			// The owner's document may be stale. A conditional write succeeds only if the document is
			// current.
			if err := s.writeOwner(ctx, c, owner); err != nil {
				return err
			}
		}
		return repository.NewSubscriptionLimitError()
	}
	if len(unfinished) > 0 && a.waits < maxWaits {
		// Other nodes may be about to create the subscriptions of these reservations.
		a.waits++
		if c.Pause(ctx, 0) {
			return client.ErrStale
		}
	}
	for _, r := range unfinished {
		// A crash after this write leaves a refused reservation. The creation that made the reservation
		// replaces it, or another creation of the same owner frees it.
		if err := s.refuseReservation(ctx, c, a.wanted.Owner, r, found[r.id]); err != nil {
			return err
		}
	}
	owner.reservations = live
	if err := s.writeOwner(ctx, c, owner); err != nil {
		return err
	}
	return client.ErrStale
}

// refuseReservation marks a reservation as refused in the definition with the same subscription id. A
// creation that uses the reservation later detects the changed definition and starts again. doc is the
// definition that was read, or nil if it does not exist.
func (s *Store) refuseReservation(ctx context.Context, c *client.Call, owner domain.ActorID, r reservation, doc *definitionDoc) error {
	next := &definitionDoc{State: definitionRefused}
	if doc != nil {
		if slices.Contains(doc.Refused, r.refusalText(owner)) {
			return nil
		}
		next.Refused, next.Document, next.etag = doc.Refused, doc.Document, doc.etag
	}
	next.ID, next.PartitionKey, next.Kind, next.WriteID = definitionID, r.id.Cursor().String(), definitionDocument.Name, s.client.NewID()
	next.Refused = append(slices.Clone(next.Refused), r.refusalText(owner))
	_, err := c.Put(ctx, s.cursors, next.PartitionKey, definitionID, next.etag, next)
	if client.IsRefused(err) {
		return client.ErrStale
	}
	return err
}
