package hub

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Checker holds all that is stored to the invariants, while the hub runs. The
// error says that it could not look; what it has seen by then is in the report.
// Each store has its own: what can be wrong depends on how it stores.
type Checker func(context.Context, CheckOptions) (CheckReport, error)

// CheckOptions say what a check looks at.
type CheckOptions struct {
	Actor  domain.ActorID // only this one; zero: all
	Repair bool           // mend the hints, undo unfinished intents, and flush tails if the node writes none; no event changes
	Resume string         // go on where a check was that reported this; "": from the start

	// Progress, if given, is told every now and then how far the check is.
	Progress func(CheckReport)
}

// CheckReport is repository.CheckReport.
type CheckReport = repository.CheckReport

// Finding is repository.Finding.
type Finding = repository.Finding

// NewerFormatFinding is repository.NewerFormatFinding.
const NewerFormatFinding = repository.NewerFormatFinding
