package hub

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// maxFreezeRecords limits the records among which FindFreeze looks.
const maxFreezeRecords = 1_000

// FindFreeze returns the record of the action that has frozen the queue of an actor: who, when and why. It is nil if the
// queue is not frozen, and if it is frozen without an action of its own, as a new one of a restored folder is.
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
