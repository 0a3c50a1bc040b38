package hub

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// maxFreezeRecords limits the records that FindFreeze reads.
const maxFreezeRecords = 1_000

// FindFreeze returns the record of the action that froze the queue of an actor. It returns nil if the queue is not
// frozen, or if there is no such record, for example in a restored folder.
func (o *Operator) FindFreeze(ctx context.Context, actor domain.ActorID) (*Record, error) {
	records, err := o.ops.Records(ctx, actor, maxFreezeRecords)
	if err != nil {
		return nil, err
	}
	for i := range records { // records has the newest record first
		switch records[i].What {
		case "freeze":
			return &records[i], nil
		case "thaw":
			return nil, nil //nolint:nilnil // that is what nil means here
		}
	}
	return nil, nil //nolint:nilnil // as above
}
