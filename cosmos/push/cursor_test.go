package push

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
)

func TestRetriesThatDoNotFitTheCursor_AreNotLoaded(t *testing.T) {
	for _, change := range []struct {
		name   string
		change func(*retryDoc) bool // changes the retry, or returns false to delete its document
	}{
		{"one is missing", func(*retryDoc) bool { return false }},
		{"one has another attempt", func(d *retryDoc) bool { d.Attempts++; return true }},
		{"one is that of another entry", func(d *retryDoc) bool { d.Position = "0.77.0.0"; return true }},
	} {
		t.Run(change.name, func(t *testing.T) {
			l := newLife(t, newRig(t, embedded.Options{}), 2, true, Options{})
			node := l.startStore(-1)
			require.NoError(t, l.publishMessages(node))
			require.NoError(t, l.createCursor(node))
			for range 2 {
				_, err := l.runStep(node)
				require.NoError(t, err)
			}
			require.Equal(t, 1, l.cursor.Standing().Retries)
			c := node.client.Begin("test")
			var d retryDoc
			id := retryID(domain.EntryID{Number: 1})
			etag, err := c.Read(t.Context(), node.cursors, l.id.String(), id, &d)
			require.NoError(t, err)
			if change.change(&d) {
				_, err = c.Put(t.Context(), node.cursors, l.id.String(), id, etag, &d)
			} else {
				err = c.Delete(t.Context(), node.cursors, l.id.String(), id, etag)
			}
			require.NoError(t, err)
			_, _, err = l.startStore(-1).Load(t.Context(), l.id, l.owner, l.clock.readTime)
			require.Error(t, err)
			require.NotEqual(t, domain.NotFound, domain.KindOf(err))
		})
	}
}

// A cursor document stores every member of a standing and returns the same standing when it is read.
func TestACursorDocument_KeepsItsStanding(t *testing.T) {
	stream, err := domain.ParseChannel("c")
	require.NoError(t, err)
	id, err := domain.ParseCursorID("c|channel|consumer")
	require.NoError(t, err)
	at := func(n int64) domain.Position {
		return domain.Position{EntryID: domain.EntryID{Priority: 3, Number: n}, Segment: 4, Page: 5}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	want := domain.Standing{
		Stream: stream, Segment: 2, At: []domain.Position{at(9)}, Open: []domain.Position{at(7), at(8)},
		Counters: domain.Counters{Triggered: 1, Filtered: 2, Delivered: 3, Errored: 4, Cancelled: 5, Expired: 6, Attempts: 7},
		Retries:  8, Digest: 0xfedcba9876543210, Listed: now, State: domain.Paused, Reason: "it was told to",
		Hold: now.Add(1000), Failures: 9, BreakerTo: now.Add(2000), By: "me", Limit: 10, Released: true,
		Caution:  &domain.Suspects{Suspects: []domain.EntryID{at(7).EntryID}, Fresh: [domain.Priorities]int{3: 12}},
		Claim:    &domain.Claim{Entry: at(8).EntryID, By: "me and you", Count: 2},
		Followed: 13,
		Replay: &domain.Replay{
			ID: "r", Number: 12, ReplayRange: domain.ReplayRange{From: now, To: now.Add(time.Hour), Filter: "a", OnlyDead: true, Rate: 14},
			State: domain.ReplayStopped, At: at(3), End: [domain.Priorities]int64{3: 15, 9: 16}, Seen: 17, Matched: 18, Skipped: 19,
		},
		Held:     &domain.HeldBundle{ID: "b", Taken: []domain.Position{at(5)}, Retries: []domain.Position{at(1), at(2)}},
		Dequeued: []string{"y", "z"},
		Recent:   []domain.Attempt{{Entry: at(6).EntryID, Number: 2, Began: now, Took: 3000, Status: 500, Error: "it has words"}},
		Expiries: []domain.Expiry{{From: at(1).EntryID, To: 5, At: now}, {From: domain.EntryID{Priority: 9}, To: 1, At: now.Add(time.Hour)}},
		Unknown:  []byte(`{"newer":[1]}`),
	}
	var d cursorDoc
	c := client.New(nil, client.Options{}).Begin("test")
	require.NoError(t, c.Decode(client.Encode(makeCursorDoc(id, &want, "w")), id.String(), &d))
	got, err := d.toStanding()
	require.NoError(t, err)
	require.Equal(t, want, got)

	retry := domain.Retry{
		Position: at(6), Published: now, Attempts: 2, Replay: 3, History: want.Recent, Due: now.Add(time.Hour), Dead: true, Reason: "it failed",
		Unknown: []byte(`{"newer":1}`),
	}
	var r retryDoc
	require.NoError(t, c.Decode(client.Encode(makeRetryDoc(id, &retry, 5)), id.String(), &r))
	read, err := r.toRetry()
	require.NoError(t, err)
	require.Equal(t, retry, read)
	require.EqualValues(t, 5, r.TTL)
}

// When a document is replaced, members that a newer version has added are preserved.
func TestReplacedDocuments_KeepUnknownMembers(t *testing.T) {
	l := newLife(t, newRig(t, embedded.Options{}), 2, true, Options{})
	node := l.startStore(-1)
	require.NoError(t, l.publishMessages(node))
	require.NoError(t, l.createCursor(node))
	for range 2 {
		_, err := l.runStep(node)
		require.NoError(t, err)
	}
	c := node.client.Begin("test")
	add := func(key, id string) {
		var d map[string]any
		etag, err := c.Read(t.Context(), node.cursors, key, id, &d)
		require.NoError(t, err)
		d["newer"] = true
		_, err = c.Put(t.Context(), node.cursors, key, id, etag, d)
		require.NoError(t, err)
	}
	add(l.id.String(), cursorID)
	add(l.id.String(), retryID(domain.EntryID{Number: 1}))
	var h map[string]any
	key := segmentKey(l.stream, 0)
	etag, err := c.Read(t.Context(), node.streams, key, headID, &h)
	require.NoError(t, err)
	h["newer"] = true
	tail := h["priorities"].(map[string]any)["0"].(map[string]any)
	tail["newer"] = true
	tail["runs"].([]any)[0].(map[string]any)["newer"] = true
	tail["runs"].([]any)[0].(map[string]any)["e"].([]any)[0].(map[string]any)["newer"] = true
	_, err = c.Put(t.Context(), node.streams, key, headID, etag, h)
	require.NoError(t, err)

	node = l.startStore(-1)
	_, err = node.Append(t.Context(), l.stream, []domain.Message{{Payload: []byte("more")}})
	require.NoError(t, err)
	require.NoError(t, l.loadCursor(node))
	l.clock.now = l.clock.now.Add(time.Hour)
	call, ok := l.cursor.Next(l.clock.now)
	require.True(t, ok)
	l.cursor.Begin(call)
	l.cursor.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Answer: domain.Answer{Began: l.clock.now, Status: 500}})
	require.NoError(t, l.storeSettlement(node))

	read := func(key, id string) map[string]any {
		var d map[string]any
		_, err := c.Read(t.Context(), node.cursors, key, id, &d)
		require.NoError(t, err)
		return d
	}
	require.Equal(t, true, read(l.id.String(), cursorID)["newer"])
	require.Equal(t, true, read(l.id.String(), retryID(call.EntryID))["newer"])
	var now map[string]any
	_, err = c.Read(t.Context(), node.streams, key, headID, &now)
	require.NoError(t, err)
	require.Equal(t, true, now["newer"])
	tail = now["priorities"].(map[string]any)["0"].(map[string]any)
	require.Equal(t, true, tail["newer"])
	run := tail["runs"].([]any)[0].(map[string]any)
	require.Equal(t, true, run["newer"])
	require.Equal(t, true, run["e"].([]any)[0].(map[string]any)["newer"])
}
