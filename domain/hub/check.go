package hub

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Checker checks all stored data against the invariants while the hub runs. If it cannot continue, it returns an
// error and a report with the findings so far. Each kind of store has its own Checker, because the possible damage
// depends on the format.
type Checker func(context.Context, CheckOptions) (CheckReport, error)

// CheckOptions are the options of a check.
type CheckOptions struct {
	Actor  domain.ActorID // check only this actor; zero checks all
	Repair bool           // repair hints, roll back unfinished intents, and flush tails if the node does not write tails; events never change
	Resume string         // CheckReport.Resume of the check to continue; "" starts a new check

	// Progress, if not nil, is called from time to time with the report so far.
	Progress func(CheckReport)
}

// CheckReport is repository.CheckReport.
type CheckReport = repository.CheckReport

// Finding is repository.Finding.
type Finding = repository.Finding

// NewerFormatFinding is repository.NewerFormatFinding.
const NewerFormatFinding = repository.NewerFormatFinding
