package replay

import (
	"context"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
)

// A Progress is the progress of the replay of a range. It may be outdated: the position is
// stored up to some seconds after the deliveries have begun.
type Progress struct {
	ID    string
	State string // Requested, Running, Done or Stopped
	domain.ReplayRange
	Seen, Matched, Skipped int64
	Remaining              int64 // upper bound for the number of remaining entries
}

// The states of a Progress.
const (
	Requested = "requested" // the owner of the cursor has not begun the replay yet
	Running   = "running"
	Done      = "done"
	Stopped   = "stopped"
)

// Start begins to repeat the deliveries of a range. It fails with Invalid if the range is not valid
// (the error begins with a JSON pointer), with NotFound if owner has no such subscription, and with
// Conflict if a replay of the subscription is running or the topic cannot be replayed.
func (s *Service) Start(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, r domain.ReplayRange) (*Progress, error) {
	n, _, err := s.checkRange(ctx, owner, id, &r)
	if err != nil {
		return nil, err
	}
	if n.standing.IsReplaying() {
		return nil, domain.Errorf(domain.Conflict, "a replay of the subscription runs already: %s; wait until it is done, or stop it", n.standing.Replay.ID)
	}
	request := domain.ReplayRequest{ID: s.opts.NewID(), Range: &r}
	if err := s.addRequest(ctx, n, request); err != nil {
		return nil, err
	}
	return &Progress{ID: request.ID, State: Requested, ReplayRange: r}, nil
}

// checkRange validates a range. It returns the subscription and the filter of the replay.
func (s *Service) checkRange(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, r *domain.ReplayRange) (*subject, *filter.Expression, error) {
	if r.Rate == 0 {
		r.Rate = domain.DefaultReplayRate
	}
	if err := r.Check(); err != nil {
		return nil, nil, err
	}
	var expression *filter.Expression
	if r.Filter != "" {
		var err error
		if expression, err = filter.Compile(r.Filter); err != nil {
			return nil, nil, domain.Errorf(domain.Invalid, "/filter: %w", err)
		}
	}
	n, err := s.findSubject(ctx, owner, id)
	if err == nil {
		err = n.checkReplayable()
	}
	return n, expression, err
}

// Get returns the progress of a replay. It fails with NotFound unless the replay waits to begin, is
// running, or was the last to run.
func (s *Service) Get(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, replay string) (*Progress, error) {
	n, err := s.findSubject(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return s.progress(ctx, n, replay)
}

func (s *Service) progress(ctx context.Context, n *subject, replay string) (*Progress, error) {
	if r := n.standing.Replay; r != nil && r.ID == replay {
		states := map[domain.ReplayState]string{domain.ReplayRunning: Running, domain.ReplayDone: Done, domain.ReplayStopped: Stopped}
		return &Progress{
			ID: r.ID, State: states[r.State], ReplayRange: r.ReplayRange,
			Seen: r.Seen, Matched: r.Matched, Skipped: r.Skipped, Remaining: r.Remaining(),
		}, nil
	}
	requests, err := s.ports.Shards.Replays(ctx, n.definition.ID.Cursor())
	if err != nil {
		return nil, err
	}
	if r := requests.After(n.standing.Followed).Find(replay); r != nil && r.Range != nil {
		return &Progress{ID: r.ID, State: Requested, ReplayRange: *r.Range}, nil
	}
	return nil, domain.Errorf(domain.NotFound, "there is no replay %s of the subscription, or another one has begun since", domain.Shorten(replay))
}

// Stop stops a replay. Deliveries that have begun are not cancelled. Stop fails with NotFound like
// Get, and does nothing if the replay has ended.
func (s *Service) Stop(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, replay string) error {
	n, err := s.findSubject(ctx, owner, id)
	if err != nil {
		return err
	}
	p, err := s.progress(ctx, n, replay)
	if err != nil || p.State == Done || p.State == Stopped {
		return err
	}
	return s.addRequest(ctx, n, domain.ReplayRequest{ID: s.opts.NewID(), Stop: replay})
}
