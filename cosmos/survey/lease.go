package survey

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// errTaken reports that another node surveys now.
var errTaken = errors.New("another node surveys")

// claimSurvey takes over the survey if no other node surveys.
func (s *Survey) claimSurvey(ctx context.Context) error {
	c := s.beginCall()
	st := &surveyState{}
	etag, err := c.Read(ctx, s.lines, partition, stateID, st)
	switch {
	case client.IsNotFound(err):
		st = s.newState()
	case domain.KindOf(err) == domain.Damaged && etag != "":
		// The state is missing, so the documents that contain lines are unknown. The survey begins with
		// a new state.
		st = s.newState()
		st.etag = etag
	case err != nil:
		return client.Classify("read the state of the survey", err)
	default:
		st.etag = etag
		if !s.mayClaim(st) {
			return nil
		}
	}
	garbage, err := s.findUnnamed(ctx, c, st)
	if err != nil {
		return err
	}
	s.own = ownership{state: st, seen: s.own.seen, failure: s.own.failure, garbage: garbage, pending: make(map[domain.ActorID]bool), flushed: s.opts.Clock()}
	s.own.since, s.own.walk, s.own.at, s.own.tokens = st.Since, st.Walk, st.At, st.clone().Tokens
	s.own.recheck, s.own.followedSince = st.Recheck, s.own.flushed
	// A crash before this write leaves the state unchanged. A crash after it leaves the lease of a dead
	// node, which expires.
	if err := s.storeState(ctx, nil); err != nil {
		s.own.state = nil
		if errors.Is(err, errTaken) {
			err = nil
		}
		return err
	}
	s.opts.Logger.InfoContext(ctx, "this node surveys the mailboxes")
	if err := s.loadOwn(ctx, c); err != nil {
		s.own.state = nil
		return err
	}
	s.owning.Store(true)
	return nil
}

// newState returns the state of a store that was never surveyed.
func (s *Survey) newState() *surveyState {
	return &surveyState{ID: stateID, PartitionKey: partition, Series: s.client.NewID(), Tokens: make(map[string]string), Walk: &walkPosition{}, First: 1}
}

// loadOwn reads the lines that the claimed state names. If a document is missing or damaged, it begins a
// walk.
func (s *Survey) loadOwn(ctx context.Context, c *client.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.catchUp(ctx, c, s.own.state)
	if !errors.Is(err, errGap) {
		return err
	}
	s.opts.Logger.WarnContext(ctx, "lines of the survey are lost; the survey reads all mailboxes again", "error", err)
	s.table.removeAll()
	s.beginWalk()
	next := s.own.state
	next.First, next.Snapshot, next.Parts, next.SnapshotBytes, next.LogBytes = next.Last+1, "", 0, 0, 0
	s.own.at = time.Time{}
	s.known = replica{series: next.Series, last: next.Last, isLoaded: true}
	s.own.garbage, err = s.findUnnamed(ctx, c, next)
	return err
}

// mayClaim reports whether this node may take over the survey: no other node surveys, or the other node
// has stored no beat for leaseTime.
func (s *Survey) mayClaim(st *surveyState) bool {
	now := s.opts.Clock()
	if st.Owner == "" || st.Owner == s.owner || s.opts.Exclusive {
		return true
	}
	seen := &s.own.seen
	if seen.owner != st.Owner || seen.beat != st.Beat || now.Before(seen.at) {
		*seen = ownerSighting{st.Owner, st.Beat, now}
		return false
	}
	return now.Sub(seen.at) >= leaseTime
}

// documentIDs returns the ids of the documents that st names.
func (st *surveyState) documentIDs() []string {
	var ids []string
	for i := range st.Parts {
		ids = append(ids, snapshotID(st.Snapshot, i))
	}
	for n := st.First; n <= st.Last; n++ {
		ids = append(ids, logID(n))
	}
	return ids
}

// findUnnamed returns the ids of the documents that st does not name.
func (s *Survey) findUnnamed(ctx context.Context, c *client.Call, st *surveyState) ([]string, error) {
	named := map[string]bool{stateID: true}
	for _, id := range st.documentIDs() {
		named[id] = true
	}
	var ids []string
	q := c.Query(s.lines, partition, "SELECT c.id FROM c")
	for !q.IsDone() {
		items, err := q.Next(ctx, 1000)
		if err != nil {
			return nil, client.Classify("list the documents of the survey", err)
		}
		for _, item := range items {
			var doc struct {
				ID string `json:"id"`
			}
			if err := q.Decode(item, &doc); err != nil {
				return nil, err
			}
			if !named[doc.ID] {
				ids = append(ids, doc.ID)
			}
		}
		q.UseCall(c.Renew())
	}
	return ids, nil
}

// Limits of a batch of the survey.
const (
	batchParts   = 16
	batchRemoved = 50
)

// storeState writes the state with the position of this node. The same batch adds documents, and removes
// some documents that the state does not name. It fails with errTaken if another node has written the
// state.
func (s *Survey) storeState(ctx context.Context, add []*linesPart) error {
	next := s.nextState()
	s.own.setPosition(next)
	return s.writeState(ctx, next, add)
}

// nextState returns a copy of the state with a new write id and the next beat of this node.
func (s *Survey) nextState() *surveyState {
	next := s.own.state.clone()
	next.WriteID, next.Owner, next.Beat = s.client.NewID(), s.owner, next.Beat+1
	return next
}

// setPosition stores in next the position up to which this node has read the mailboxes.
func (o *ownership) setPosition(next *surveyState) {
	next.At, next.Since, next.Tokens, next.Walk = o.at, o.since, maps.Clone(o.tokens), o.walk
	next.Recheck = o.recheck
}

func (s *Survey) writeState(ctx context.Context, next *surveyState, add []*linesPart) error {
	c, o := s.beginCall(), &s.own
	removed := o.garbage[:min(len(o.garbage), batchRemoved)]
	// The batch is atomic: a crash leaves either the old or the new state and documents.
	results, err := c.Batch(ctx, s.lines, partition, false, func(b *azcosmos.TransactionalBatch) {
		if next.etag == "" {
			b.CreateItem(client.Encode(next), nil)
		} else {
			b.ReplaceItem(stateID, client.Encode(next), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &next.etag})
		}
		for _, p := range add {
			b.CreateItem(client.Encode(p), nil)
		}
		for _, id := range removed {
			b.DeleteItem(id, nil)
		}
	})
	switch {
	case err == nil:
		next.etag = results[0].ETag
	case client.IsRefused(err) || domain.KindOf(err) == domain.Uncertain:
		if err = s.readBack(ctx, c, next); err != nil {
			return err
		}
	default:
		return client.Classify("store the state of the survey", err)
	}
	o.state, o.garbage, o.flushed = next, o.garbage[len(removed):], s.opts.Clock()
	return nil
}

// readBack returns nil if the write of next was applied, and errTaken if another write replaced the state.
func (s *Survey) readBack(ctx context.Context, c *client.Call, next *surveyState) error {
	stored := &surveyState{}
	etag, err := c.Read(ctx, s.lines, partition, stateID, stored)
	switch {
	case client.IsNotFound(err):
		return errTaken // the state was deleted; the next round creates a new state
	case err != nil:
		return client.Classify("read the state of the survey", err)
	case stored.WriteID != next.WriteID:
		return errTaken
	}
	next.etag = etag
	return nil
}

// loseOwnership drops the data that only the node that surveys has.
func (s *Survey) loseOwnership() {
	s.owning.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = replica{} // the table may contain lines that were never stored; Surveyed must load all lines again
	s.own = ownership{seen: s.own.seen, failure: s.own.failure}
}

// release flushes, and stores a state that names no node.
func (s *Survey) release(ctx context.Context) {
	if s.own.state == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := s.flush(ctx)
	if err == nil {
		next := s.own.state.clone()
		next.Owner, next.WriteID = "", s.client.NewID()
		err = s.writeState(ctx, next, nil)
	}
	if err != nil && !errors.Is(err, errTaken) {
		s.opts.Logger.WarnContext(ctx, "the node could not release the survey; another node takes it over when the lease has expired", "error", err)
	}
	s.loseOwnership()
}
