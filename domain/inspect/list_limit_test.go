package inspect_test

import (
	"context"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/repository"
)

// countedStreams counts how many entries are read.
type countedStreams struct {
	repository.Streams
	entries int
	from    []domain.Position
}

func (s *countedStreams) Read(ctx context.Context, stream domain.StreamName, from domain.Position, limit int) (repository.Entries, error) {
	found, err := s.Streams.Read(ctx, stream, from, limit)
	s.entries += len(found.Entries)
	s.from = append(s.from, from)
	return found, err
}

// newBacklogWorld returns a world with 500 waiting events in each priority. Every 50th event has type b, the rest have
// type a.
func newBacklogWorld(t *testing.T, filter string) (*world, *countedStreams) {
	t.Helper()
	w := newWorld(t, filter)
	streams := &countedStreams{Streams: w.streams}
	w.Service = inspect.New(inspect.Ports{Definitions: w.definitions, Cursors: w.cursors, Streams: streams, Receivers: w, Caller: w}, inspect.Options{})
	for p := range domain.Priorities {
		for range 10 {
			messages := make([]domain.Message, 50)
			for i := range messages {
				messages[i] = domain.Message{Priority: p, Attributes: map[string]string{"type": "a"}}
			}
			messages[7].Attributes["type"] = "b"
			_, err := w.streams.Append(t.Context(), w.stream(), messages)
			require.NoError(t, err)
		}
	}
	return w, streams
}

func TestAPage_ReadsALimitedNumberOfEntries(t *testing.T) {
	for filter, want := range map[string]int{"type == 'c'": 0, "type == 'b'": 100, "": 5000} {
		w, streams := newBacklogWorld(t, filter)
		pages, seen := 0, make(map[domain.DeliveryID]bool)
		q := inspect.Query{Subscription: w.id, Size: 7}
		for isLast := false; !isLast; isLast = q.Page == "" {
			streams.entries = 0
			page, err := w.List(t.Context(), w.reader, q)
			require.NoError(t, err)
			require.LessOrEqual(t, streams.entries, 1100)
			for i := range page.Deliveries {
				require.False(t, seen[page.Deliveries[i].ID], "no delivery is in two pages")
				seen[page.Deliveries[i].ID] = true
			}
			q.Page = page.Next
			pages++
		}
		require.Len(t, seen, want, filter)
		require.GreaterOrEqual(t, pages, 5)
	}
}

// When the read limit is reached, a page ends. A failed delivery of a later entry must then be on a later page, so that
// all pages together are sorted.
func TestAPageAtTheReadLimit_LeavesOutLaterDeliveries(t *testing.T) {
	w, _ := newBacklogWorld(t, "type == 'b'")
	w.callWith(domain.Answer{Status: 500}) // the delivery of the first event of priority 9 fails
	states := w.list(inspect.Query{Size: 100})
	require.Len(t, states, 101, "the one that failed does not pass the filter")
	require.Equal(t, "9.0 retrying", states[90])
	require.Len(t, w.list(inspect.Query{State: inspect.Waiting}), 100)
}

// A forged token can contain any position, but must not make the store read earlier pages.
func TestAForgedToken_DoesNotReadEarlierPages(t *testing.T) {
	w, streams := newBacklogWorld(t, "")
	w.callWith(domain.Answer{Status: 200})
	standing, err := w.cursors.Standing(t.Context(), w.id.Cursor())
	require.NoError(t, err)
	at := standing.Position(9)
	for _, token := range []string{"9.100.0.0", "9.100"} {
		streams.from = nil
		_, err = w.List(t.Context(), w.reader, inspect.Query{Subscription: w.id, Page: base64.RawURLEncoding.EncodeToString([]byte(token))})
		require.NoError(t, err)
		require.NotEmpty(t, streams.from)
		require.EqualValues(t, 101, streams.from[0].Number)
		require.Equal(t, []int{at.Segment, at.Page}, []int{streams.from[0].Segment, streams.from[0].Page})
	}
}
