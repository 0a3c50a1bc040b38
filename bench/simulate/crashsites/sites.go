//go:build unix

package crashsites

import (
	"slices"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// A hubSetup says in which process the engine, bus and content of a hub are.
type hubSetup string

const (
	embedded hubSetup = "embedded" // engine, bus and content are in the process that is killed
	apart    hubSetup = "apart"    // engine, bus and content are in separate processes, which are not killed
)

// A stage is the kind of work during which a process is killed.
type stage string

const (
	living   stage = "living"   // events are sent by HTTP and by the bus, and fetched
	sweeping stage = "sweeping" // acknowledged events are removed, and no events are sent
	tailing  stage = "tailing"  // like living, with tails in heads: small Saves and flushes
	pushing  stage = "pushing"  // events are published, and receivers are called
	watching stage = "watching" // watched documents change, and watches are created and deleted
	storing  stage = "storing"  // events of objects are stored

	marking    stage = "marking"    // like living, but the content of open bundles is deleted
	crawling   stage = "crawling"   // objects are compared with a store
	patching   stage = "patching"   // attributes of objects are changed
	forgetting stage = "forgetting" // rows of objects are removed by sweeps
	relaying   stage = "relaying"   // changes of objects are published to their topic
)

var stages = []stage{living, tailing, sweeping, pushing, watching, storing, marking, crawling, patching, forgetting, relaying}

// usesObjectNode reports whether the killed process is a node that stores objects, not a hub.
func (s stage) usesObjectNode() bool {
	return s == storing || s == crawling || s == patching || s == forgetting || s == relaying
}

// A crashSite is a step at which a process is killed.
type crashSite struct {
	Place hubSetup
	Stage stage
	Step  steps.Name
	When  When
}

func (c crashSite) String() string {
	return string(c.Place) + ", " + string(c.Step) + ", " + string(c.When)
}

// stepsOf returns the steps that a hub takes in a setup at a stage. Reads of external accounts may be stale. So only in
// the setup apart does a Peek verify its reads, and may a node request a head from a second node.
func stepsOf(p hubSetup, s stage) []steps.Name {
	if s == sweeping {
		return []steps.Name{steps.TakeTurn, steps.Prove, steps.Retain, steps.Remove}
	}
	if s == tailing {
		return []steps.Name{steps.Flush, steps.Count, steps.Reserve, steps.Commit}
	}
	if s == pushing {
		all := []steps.Name{
			steps.Append, steps.ReadStream, steps.Define, steps.CreateCursor, steps.ReadShard, steps.ReadCursor,
			steps.ReadRetries, steps.ListRetry, steps.Settle,
		}
		if p == apart {
			all = append(all, steps.Beat, steps.ReadNodes, steps.Assign)
		}
		return all
	}
	if s == watching {
		return []steps.Name{
			steps.Mark, steps.StoreWatch, steps.CreateCursor, steps.ReadCursor, steps.Change, steps.Append, steps.RemoveChange,
			steps.Settle, steps.DeleteWatch, steps.Cancel, steps.Retire, steps.Unlist,
		}
	}
	if s.usesObjectNode() {
		return stepsOfObjects(p, s)
	}
	if s == marking {
		if p == apart {
			return nil // in this setup, content is in a Blob account, so there are no files of the hub to delete
		}
		return []steps.Name{steps.MarkGone, ask, hear, steps.Answer}
	}
	all := []steps.Name{
		receive, steps.ReadHead, steps.Reserve, steps.Insert, steps.Count, steps.Point, steps.Commit, settle,
		steps.Claim, steps.Bar, steps.Clear, steps.Seal, steps.LeaveFilter,
		steps.ReadGates, steps.ReadEntry, steps.ReadDrawers, steps.ReadPages, steps.Mend, steps.OpenBundle,
		ask, hear, steps.Answer,
		steps.ReadBundle, steps.Dequeue, steps.Position, steps.Repoint, tell, steps.Deliver,
	}
	if p == apart {
		all = append(all, steps.Want, steps.Prove, keep, share)
	}
	return all
}

// stepsOfObjects returns the steps of a node that stores objects. Its engine is always embedded, so the setup apart has
// no steps.
func stepsOfObjects(p hubSetup, s stage) []steps.Name {
	switch {
	case p == apart:
		return nil
	case s == crawling:
		return []steps.Name{
			steps.StartJob, steps.ClaimJob, steps.ReadObjects, steps.CreateObjects, steps.Spill, steps.MoveJob, steps.ReadJobs, steps.EndJob,
		}
	case s == patching:
		return []steps.Name{steps.ReadSpilled, steps.Spill, steps.Amend, steps.StartJob, steps.ClaimJob, steps.MoveJob, steps.EndJob}
	case s == relaying:
		return []steps.Name{steps.CreateObjects, steps.UpdateObjects, steps.Append, steps.RemoveChange}
	case s == forgetting:
		return []steps.Name{steps.ReadSweep, steps.MoveSweep, steps.ReadSpilled, steps.Forget}
	}
	return []steps.Name{
		steps.ReadShards, steps.StoreShards, steps.ReadObjects, steps.ReadSpilled, steps.CreateObjects, steps.UpdateObjects, steps.Spill,
	}
}

// crashSites returns all crash sites of a setup at a stage.
func crashSites(p hubSetup, s stage) (all []crashSite) {
	for _, step := range stepsOf(p, s) {
		for _, when := range []When{Before, After} {
			all = append(all, crashSite{p, s, step, when})
		}
	}
	return all
}

// leadsTo returns the step at which a process must be killed so that the next process reaches step. For example, a
// repair happens only after a kill has interrupted other work.
func leadsTo(step steps.Name) (steps.Name, bool) {
	switch {
	case slices.Contains([]steps.Name{steps.Claim, steps.Bar, steps.Clear, steps.Want}, step):
		return steps.Count, true
	case step == steps.Mend:
		return steps.Repoint, true
	}
	return "", false
}
