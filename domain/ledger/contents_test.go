package ledger_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A contentLog is a Contents that records the keys passed to Gone.
type contentLog struct {
	gone []string
	fail error
}

func (c *contentLog) Gone(_ context.Context, key string) error {
	c.gone = append(c.gone, key)
	return c.fail
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// report returns a report of one event, which has a sequencer.
func report(bucket, key string, typ domain.ObjectEventType, sequencer string) repository.ObjectReport {
	return repository.ObjectReport{
		Name: must(domain.ParseObjectName(bucket, key)),
		ObjectEvent: domain.ObjectEvent{
			Type: typ, Sequencer: must(domain.ParseSequencer(domain.HexSequencer, sequencer)), Time: time.Unix(1_800_000_000, 0),
		},
	}
}

// ingestReports stores events, and returns the results.
func ingestReports(t *testing.T, objects repository.Objects, reports ...repository.ObjectReport) []repository.ObjectResult {
	t.Helper()
	results, err := objects.Ingest(t.Context(), reports)
	require.NoError(t, err)
	require.Len(t, results, len(reports))
	return results
}

func TestWatchContents_NotifiesOfDeletedObjects(t *testing.T) {
	log := &contentLog{}
	objects := ledger.WatchContents(memory.NewObjects(), "account/content", log, slog.New(slog.DiscardHandler))
	const created, deleted = domain.ObjectCreated, domain.ObjectDeleted
	ingestReports(
		t, objects,
		report("account/content", "a", created, "1"), report("account/content", "b", created, "1"), report("account/other", "a", created, "1"),
	)
	require.Empty(t, log.gone)
	ingestReports(t, objects, report("account/content", "a", deleted, "3"), report("account/content", "a", created, "2"), report("account/other", "a", deleted, "2"))
	require.Equal(t, []string{"a"}, log.gone, "once for each object of a call")
	ingestReports(t, objects, report("account/content", "a", deleted, "3"))
	require.Equal(t, []string{"a", "a"}, log.gone, "again when the event comes again")
	ingestReports(t, objects, report("account/content", "a", created, "4"), report("account/content", "b", created, "2"))
	require.Len(t, log.gone, 2)
	ingestReports(t, objects, report("account/content", "a", deleted, "2A"))
	require.Len(t, log.gone, 2, "a late event of an object that exists")
}

func TestWatchContents_FailsWithUncertainIfGoneFailsTemporarily(t *testing.T) {
	for _, tc := range []struct {
		kind domain.Kind
		want domain.Kind
	}{
		{domain.Busy, domain.Uncertain},
		{domain.Unavailable, domain.Uncertain},
		{domain.Uncertain, domain.Uncertain},
		{domain.Damaged, domain.Unknown},
		{domain.Unknown, domain.Unknown},
	} {
		log := &contentLog{fail: domain.Errorf(tc.kind, "%w", errors.New("no"))}
		if tc.kind == domain.Unknown {
			log.fail = errors.New("no")
		}
		objects := ledger.WatchContents(memory.NewObjects(), "b", log, slog.New(slog.DiscardHandler))
		event := report("b", "a", domain.ObjectDeleted, "1")
		result := ingestReports(t, objects, event)[0]
		require.Equal(t, tc.want, domain.KindOf(result.Err), "after %v", tc.kind)
		log.fail = nil
		result = ingestReports(t, objects, event)[0]
		require.Equal(t, repository.ObjectResult{Outcome: domain.ObjectDuplicate}, result)
		require.Len(t, log.gone, 2)
	}
}
