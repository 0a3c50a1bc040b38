package hub

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Checker compares all stored data with the invariants, while the hub runs. An error means
// that the check could not continue; the report has the findings so far. Each store has its own
// Checker, because its format decides what can be wrong.
type Checker func(context.Context, CheckOptions) (CheckReport, error)

// CheckOptions select the data that a check reads.
type CheckOptions struct {
	Actor  domain.ActorID // check only this actor; zero: all actors
	Repair bool           // repair the hints, roll back unfinished intents, and flush tails if the node does not write tails; no event changes
	Resume string         // value of Resume in the report of the check to continue; "": check from the start

	// Progress, if given, is called periodically with the progress of the check.
	Progress func(CheckReport)
}

// CheckReport is repository.CheckReport.
type CheckReport = repository.CheckReport

// Finding is repository.Finding.
type Finding = repository.Finding

// NewerFormatFinding is repository.NewerFormatFinding.
const NewerFormatFinding = repository.NewerFormatFinding
