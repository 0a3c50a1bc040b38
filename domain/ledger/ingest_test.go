package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// creation returns a report that an object was created.
func creation(t *testing.T, key, sequencer string) ledger.Report {
	t.Helper()
	name, err := domain.ParseObjectName("bucket", key)
	require.NoError(t, err)
	s, err := domain.ParseSequencer(domain.HexSequencer, sequencer)
	require.NoError(t, err)
	return ledger.Report{Name: name, ObjectEvent: domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: s}}
}

// A refusingObjects refuses events of the objects with certain keys.
type refusingObjects struct {
	repository.Objects
	errs map[string]error
}

func (f *refusingObjects) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	results, err := f.Objects.Ingest(ctx, reports)
	for i := range results {
		if err := f.errs[reports[i].Name.Key()]; err != nil {
			results[i] = repository.ObjectResult{Err: err}
		}
	}
	return results, err
}

func TestIngest_CountsStoredEventsAndDuplicates(t *testing.T) {
	s := ledger.New(ledger.Ports{Objects: memory.NewObjects()}, ledger.Options{})
	events := []ledger.Report{creation(t, "a", "1"), creation(t, "b", "1"), creation(t, "a", "1")}
	require.Equal(t, ledger.IngestResult{Stored: 2, Duplicates: 1}, s.Ingest(t.Context(), events))
	require.Equal(t, ledger.IngestResult{Duplicates: 3}, s.Ingest(t.Context(), events))
	require.Equal(t, ledger.IngestResult{}, s.Ingest(t.Context(), nil))
}

func TestIngest_StoresEventsIndependently(t *testing.T) {
	down := domain.Errorf(domain.Unavailable, "down")
	store := &refusingObjects{memory.NewObjects(), map[string]error{"down": down, "full": fmt.Errorf("%w: %w", repository.ErrPartitionFull, down)}}
	s := ledger.New(ledger.Ports{Objects: store}, ledger.Options{})
	bad := creation(t, "bad", "1")
	bad.Type = 0
	done := s.Ingest(t.Context(), []ledger.Report{creation(t, "down", "1"), bad, creation(t, "a", "1"), creation(t, "full", "1")})
	require.Equal(t, 1, done.Stored)
	require.Len(t, done.Failures, 3)
	require.Equal(t, ledger.Failure{Event: 0, Err: down}, done.Failures[0])
	require.Equal(t, 1, done.Failures[1].Event)
	require.True(t, done.Failures[1].IsInvalid())
	require.False(t, done.Failures[1].IsFull())
	require.Equal(t, 3, done.Failures[2].Event)
	require.True(t, done.Failures[2].IsFull())
	require.False(t, done.Failures[0].IsFull() || done.Failures[0].IsInvalid())
}

// A store's clock was wrong, so the time of a creation is far ahead. The deletion that follows has
// no sequencer, and must still count as later.
func TestIngest_TreatsATimeFarAheadAsUnknown(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for ahead, want := range map[time.Duration]time.Time{24 * time.Hour: now.Add(24 * time.Hour), 24*time.Hour + 1: {}, 9000 * time.Hour: {}} {
		store := memory.NewObjects()
		s := ledger.New(ledger.Ports{Objects: store}, ledger.Options{Clock: func() time.Time { return now }})
		made := creation(t, "a", "1")
		made.Time = now.Add(ahead)
		gone := ledger.Report{Name: made.Name, ObjectEvent: domain.ObjectEvent{Type: domain.ObjectDeleted, Carrier: domain.Carrier{Message: "1"}, Time: now}}
		require.Equal(t, ledger.IngestResult{Stored: 2}, s.Ingest(t.Context(), []ledger.Report{made, gone}))
		require.Equal(t, now.Add(ahead), made.Time, "what the caller has stays as it is")
		o, err := store.Object(t.Context(), made.Name)
		require.NoError(t, err)
		for i := range o.Rows {
			if r := &o.Rows[i]; r.Type == domain.ObjectCreated {
				require.Equal(t, want, r.Time)
			}
		}
		require.Equal(t, want.IsZero(), o.Current == nil)
	}
}

func TestIngest_ReportsEveryEventOfACallThatFails(t *testing.T) {
	s := ledger.New(ledger.Ports{Objects: memory.NewObjects()}, ledger.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := s.Ingest(ctx, []ledger.Report{creation(t, "a", "1"), creation(t, "b", "1")})
	require.Len(t, done.Failures, 2)
	for _, f := range done.Failures {
		require.True(t, errors.Is(f.Err, context.Canceled))
	}
}
