package hub

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// maxFreezeRecords is the maximum number of records that FindFreeze reads.
const maxFreezeRecords = 1_000

// FindFreeze returns the record of the action that has frozen the queue of an actor. It returns
// nil if the queue is not frozen, or if no action has frozen it, for example because the queue is
// new in a restored folder.
func (o *Operator) FindFreeze(ctx context.Context, actor domain.ActorID) (*Record, error) {
	records, err := o.ops.Records(ctx, actor, maxFreezeRecords)
	if err != nil {
		return nil, err
	}
	for i := range records { // the newest first
		switch records[i].What {
		case "freeze":
			return &records[i], nil
		case "thaw":
			return nil, nil //nolint:nilnil // that is what nil means here
		}
	}
	return nil, nil //nolint:nilnil // as above
}
