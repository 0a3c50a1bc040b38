package broker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An OverdueQuery selects which overdue jobs to list.
type OverdueQuery struct {
	First OverduePosition // where the list begins; zero is the beginning
	Delay time.Duration   // how long a job must be overdue at least
}

// An OverduePosition is a position in the list of overdue jobs.
type OverduePosition struct {
	Shard  int
	Cursor string // reading the shard begins at this cursor; "": at the shard's first cursor
}

const (
	maxOverdueReads   = 100  // maximum number of cursors that are read for one page
	maxOverdueRetries = 1000 // maximum number of retries that are read for one cursor
)

// Overdue returns jobs that no node processes, because the node that served the consumer has died and no other node has
// taken over. They are untried, were under way when the node died, or have an attempt that is due. A job is not overdue
// while its call is under way, while its message is in a bundle, or while its consumer is paused.
//
// Overdue returns at most one job for each shard, because a re-trigger makes a node take over the whole shard. A list
// that needs too many reads ends early, possibly without jobs, and continues at next. If all owners are alive, Overdue
// reads nothing.
func (s *Service) Overdue(ctx context.Context, creds *Credentials, q OverdueQuery) (jobs []Job, next OverduePosition, more bool, err error) {
	if err := creds.RequireAdmin(); err != nil {
		return nil, next, false, err
	}
	l := &overdueLister{service: s, now: s.opts.Clock(), delay: q.Delay, ends: make(map[domain.StreamName]repository.StreamEnd)}
	for _, shard := range s.opts.Orphaned() {
		from := OverduePosition{Shard: shard}
		switch {
		case shard < q.First.Shard:
			continue
		case shard == q.First.Shard:
			from = q.First
		}
		if next, more, err = l.listNext(ctx, from); more || err != nil {
			return l.jobs, next, more, err
		}
	}
	return l.jobs, OverduePosition{}, false, nil
}

type overdueLister struct {
	service *Service
	now     time.Time
	delay   time.Duration
	ends    map[domain.StreamName]repository.StreamEnd
	reads   int
	jobs    []Job
}

// listNext adds an overdue job of one shard to the list, if there is one.
func (l *overdueLister) listNext(ctx context.Context, from OverduePosition) (next OverduePosition, more bool, err error) {
	entries, _, err := l.service.ports.Shards.Cursors(ctx, from.Shard)
	switch domain.KindOf(err) {
	case domain.Damaged, domain.NewerFormat: // a damaged cursor must not hide the jobs of the remaining cursors
	default:
		if err != nil {
			return next, false, err
		}
	}
	slices.SortFunc(entries, func(a, b repository.ShardEntry) int { return cmp.Compare(a.Cursor.String(), b.Cursor.String()) })
	for i := range entries {
		e := &entries[i]
		consumer, isConsumer := domain.ConsumerOf(e.Cursor)
		if !isConsumer || e.Cursor.String() < from.Cursor {
			continue
		}
		if l.reads >= maxOverdueReads {
			return OverduePosition{from.Shard, e.Cursor.String()}, true, nil
		}
		l.reads++
		job, found, err := l.findOverdue(ctx, consumer, e)
		if err != nil {
			return next, false, err
		}
		if found {
			l.jobs = append(l.jobs, job)
			return next, false, nil
		}
	}
	return next, false, nil
}

// findOverdue returns an overdue job of a consumer. It returns false if none exists.
func (l *overdueLister) findOverdue(ctx context.Context, consumer domain.PartyID, entry *repository.ShardEntry) (Job, bool, error) {
	standing, err := l.service.ports.Cursors.Standing(ctx, entry.Cursor)
	switch {
	case domain.KindOf(err) == domain.NotFound: // the consumer has no cursor yet
		return Job{}, false, nil
	case err != nil:
		return Job{}, false, err
	case standing.State != domain.Active, !l.isOverdue(standing.Hold), !l.isOverdue(standing.BreakerTo):
		return Job{}, false, nil
	}
	for _, find := range []func(context.Context, domain.PartyID, *domain.Standing) (Job, bool, error){l.findRetry, l.findOpen, l.findUntaken} {
		if job, found, err := find(ctx, consumer, &standing); found || err != nil {
			return job, found, err
		}
	}
	if entry.Requested <= standing.Followed {
		return Job{}, false, nil
	}
	return l.findRequested(ctx, consumer, &standing)
}

// isOverdue reports whether at least the delay has passed since due.
func (l *overdueLister) isOverdue(due time.Time) bool { return !due.Add(l.delay).After(l.now) }

// findRetry returns a job with an attempt that is due.
func (l *overdueLister) findRetry(ctx context.Context, consumer domain.PartyID, standing *domain.Standing) (Job, bool, error) {
	if standing.Retries == 0 || !l.isOverdue(standing.Listed) {
		return Job{}, false, nil
	}
	after := domain.EntryID{Number: -1}
	for range maxOverdueRetries / listBatch { // retries beyond this limit are examined once earlier ones have ended
		retries, err := l.service.ports.Cursors.Retries(ctx, consumer.Cursor(), after, listBatch)
		if err != nil {
			return Job{}, false, err
		}
		for i := range retries {
			r := &retries[i]
			after = r.EntryID
			if !l.isOverdue(r.Due) || standing.Held.Has(r.EntryID) {
				continue
			}
			if j := l.service.jobOf(consumer, r); j.Status == RetryDelivery {
				return j, true, nil
			}
		}
		if len(retries) < listBatch {
			break
		}
	}
	return Job{}, false, nil
}

// findOpen returns a job that was under way when the node died.
func (l *overdueLister) findOpen(ctx context.Context, consumer domain.PartyID, standing *domain.Standing) (Job, bool, error) {
	for _, p := range standing.Open {
		if job, found, err := l.findUntried(ctx, consumer, p, p.Number+1); found || err != nil {
			return job, found, err
		}
	}
	return Job{}, false, nil
}

// findUntaken returns a job whose message the cursor has not reached.
func (l *overdueLister) findUntaken(ctx context.Context, consumer domain.PartyID, standing *domain.Standing) (Job, bool, error) {
	stream := consumer.Stream()
	end, isKnown := l.ends[stream]
	if !isKnown {
		var err error
		if end, err = l.service.ports.Streams.End(ctx, stream); err != nil {
			return Job{}, false, err
		}
		l.ends[stream] = end
	}
	for _, p := range end.Positions {
		at := standing.Position(p.Priority)
		if at.Number >= p.Number {
			continue
		}
		if job, found, err := l.findUntried(ctx, consumer, at, p.Number); found || err != nil {
			return job, found, err
		}
	}
	return Job{}, false, nil
}

// findUntried returns the job of the first message between a position and number end, if the first attempt is overdue.
func (l *overdueLister) findUntried(ctx context.Context, consumer domain.PartyID, at domain.Position, end int64) (Job, bool, error) {
	read, err := l.service.ports.Streams.Read(ctx, consumer.Stream(), at, 1)
	if err != nil || len(read.Entries) == 0 {
		return Job{}, false, err
	}
	e := &read.Entries[0]
	id := e.Position.EntryID
	if id.Number >= end || !l.isOverdue(e.Published) || l.service.opts.IsCalling(consumer.Cursor(), id) {
		return Job{}, false, nil
	}
	return Job{Consumer: consumer, Message: id.MessageID(), Status: InFlight}, true, nil
}

// findRequested returns a dead job whose re-trigger is stored but not executed.
func (l *overdueLister) findRequested(ctx context.Context, consumer domain.PartyID, standing *domain.Standing) (Job, bool, error) {
	requests, err := l.service.ports.Shards.Replays(ctx, consumer.Cursor())
	if err != nil {
		return Job{}, false, err
	}
	for _, r := range requests.After(standing.Followed) {
		if r.Delivery == nil {
			continue // ignore a request to fetch messages, because the consumer repeats it
		}
		retry, err := l.service.ports.Cursors.Retry(ctx, consumer.Cursor(), r.Delivery.EntryID)
		switch {
		case domain.KindOf(err) == domain.NotFound: // the dead letter was already removed
		case err != nil:
			return Job{}, false, err
		case retry.Dead:
			return l.service.jobOf(consumer, &retry), true, nil
		}
	}
	return Job{}, false, nil
}
