package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Report is a store's event about an object, decoded from HTTP or from the bus.
type Report = repository.ObjectReport

// An IngestResult counts the events of one call of Ingest by their outcomes.
type IngestResult struct {
	Stored     int
	Duplicates int       // number of events that are already stored, or that the call contains twice
	TooOld     int       // number of events that are not stored because they are too old; see domain.ObjectRetention
	Failures   []Failure // failed events, in the order in which they were passed to Ingest
}

// A Failure is an event that failed in a call of Ingest, although the event may be stored.
type Failure struct {
	Event int // index of the event among the events of the call
	Err   error
}

// IsInvalid reports whether the event is invalid, so that another attempt would fail, too.
func (f *Failure) IsInvalid() bool { return domain.KindOf(f.Err) == domain.Invalid }

// IsFull reports whether the object's partition is full. The event can be stored after other
// objects in this partition were removed.
func (f *Failure) IsFull() bool { return errors.Is(f.Err, repository.ErrPartitionFull) }

// maxAhead is the maximum time by which a store's clock may be ahead of the hub's clock. If the
// time of an event is further ahead, it is treated as unknown. Otherwise all events until that
// time, even a deletion, would count as earlier.
const maxAhead = 24 * time.Hour

// Ingest stores events independently: if an event fails, the rest are not affected. Stored events
// and duplicates are durable, and included in the state of their objects. The caller can pass
// failed events to Ingest again: if an event was stored although it failed, it is then a duplicate.
// If the time of an event is more than a day ahead, the event is stored without a time.
func (s *Service) Ingest(ctx context.Context, reports []Report) IngestResult {
	var done IngestResult
	valid := make([]Report, 0, len(reports))
	indices := make([]int, 0, len(reports)) // for each element of valid, its index in reports
	errs := make(map[int]error)
	latest := s.opts.Clock().Add(maxAhead)
	for i := range reports {
		if err := reports[i].Check(); err != nil {
			errs[i] = err
			continue
		}
		report := reports[i]
		if report.Time.After(latest) {
			report.Time = time.Time{}
		}
		valid, indices = append(valid, report), append(indices, i)
	}
	if len(valid) > 0 {
		results, err := s.Objects.Ingest(ctx, valid)
		for place, i := range indices {
			switch {
			case err != nil:
				errs[i] = err
			case results[place].Err != nil:
				errs[i] = results[place].Err
			case results[place].Outcome == domain.ObjectDuplicate:
				done.Duplicates++
			case results[place].Outcome == domain.ObjectTooOld:
				done.TooOld++
			default:
				done.Stored++
			}
		}
	}
	for i := range reports {
		if err := errs[i]; err != nil {
			done.Failures = append(done.Failures, Failure{i, err})
		}
	}
	return done
}
