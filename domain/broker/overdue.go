package broker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An OverdueQuery selects the overdue jobs of a list.
type OverdueQuery struct {
	First OverduePosition // where the list begins; zero: at the beginning
	Delay time.Duration   // minimum time for which a job has to be overdue
}

// An OverduePosition is a position in the list of overdue jobs.
type OverduePosition struct {
	Shard  int
	Cursor string // cursor of the shard with which the list begins; "": the first cursor
}

const (
	maxOverdueReads   = 100  // cursors that are read for a page of overdue jobs
	maxOverdueRetries = 1000 // retries that are read for one cursor
)

// Overdue returns jobs that wait although their time has come, because the node that served
// their consumers has died and no other node has taken over: jobs that were not tried, jobs that
// were under way when the node died, and jobs whose next attempt is due. A job is not overdue if
// its call is under way, if its message is in a bundle, or if its consumer is paused or has
// requested a pause.
//
// Overdue returns one job of each shard of cursors: a re-trigger makes a node take over the whole
// shard. A list that would read too many cursors ends early, perhaps without jobs, and continues
// at next. While the owners of all shards are alive, Overdue reads nothing.
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

// listNext adds an overdue job of a shard, if it finds one.
func (l *overdueLister) listNext(ctx context.Context, from OverduePosition) (next OverduePosition, more bool, err error) {
	entries, _, err := l.service.ports.Shards.Cursors(ctx, from.Shard)
	switch domain.KindOf(err) {
	case domain.Damaged, domain.NewerFormat: // the jobs of other cursors can be listed
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

// findOverdue returns an overdue job of a consumer, or false if the consumer has no overdue job.
func (l *overdueLister) findOverdue(ctx context.Context, consumer domain.PartyID, entry *repository.ShardEntry) (Job, bool, error) {
	standing, err := l.service.ports.Cursors.Standing(ctx, entry.Cursor)
	switch {
	case domain.KindOf(err) == domain.NotFound: // the consumer's cursor was not created
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

// findRetry returns a job whose next attempt is due.
func (l *overdueLister) findRetry(ctx context.Context, consumer domain.PartyID, standing *domain.Standing) (Job, bool, error) {
	if standing.Retries == 0 || !l.isOverdue(standing.Listed) {
		return Job{}, false, nil
	}
	after := domain.EntryID{Number: -1}
	for range maxOverdueRetries / listBatch { // later retries are found when the earlier ones have been delivered
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

// findUntaken returns a job that was not tried.
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

// findUntried returns the job of the first message from a position up to number end, if it has
// waited too long for its first attempt.
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

// findRequested returns a dead job whose re-trigger was stored but not carried out.
func (l *overdueLister) findRequested(ctx context.Context, consumer domain.PartyID, standing *domain.Standing) (Job, bool, error) {
	requests, err := l.service.ports.Shards.Replays(ctx, consumer.Cursor())
	if err != nil {
		return Job{}, false, err
	}
	for _, r := range requests.After(standing.Followed) {
		if r.Delivery == nil {
			continue // a consumer that fetches messages repeats its request
		}
		retry, err := l.service.ports.Cursors.Retry(ctx, consumer.Cursor(), r.Delivery.EntryID)
		switch {
		case domain.KindOf(err) == domain.NotFound: // the dead letter was removed
		case err != nil:
			return Job{}, false, err
		case retry.Dead:
			return l.service.jobOf(consumer, &retry), true, nil
		}
	}
	return Job{}, false, nil
}
