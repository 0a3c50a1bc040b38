package original

import (
	"context"
	"net/http"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
)

// receive records that an event was received and will be in a drawer, and returns
// whether it is new, a duplicate or a conflict. A record whose event is missing has no
// effect.
func (r *Repository) receive(ctx context.Context, e *ingestedEvent, drawer string) (saveOutcome, error) {
	mine := newUniqueID(e, drawer)
	err := r.idempotency.Create(ctx, mine.PartitionKey, mine)
	if items.Status(err) != http.StatusConflict {
		return accepted, err
	}
	var earlier uniqueID
	found, err := r.idempotency.Read(ctx, mine.PartitionKey, mine.ID, &earlier)
	if err == nil && !found {
		err = domain.Errorf(domain.Damaged, "id %s is there, and is not", mine.ID)
	}
	if err != nil {
		return undecided, err
	}
	var stored eventItem
	found, err = r.cabinets.Read(ctx, earlier.DrawerID, mine.ID, &stored)
	switch {
	case err != nil:
		return undecided, err
	case !found:
		return accepted, r.idempotency.Upsert(ctx, mine.PartitionKey, mine)
	case earlier.Content == mine.Content:
		return duplicate, nil
	default:
		return conflicting, nil
	}
}
