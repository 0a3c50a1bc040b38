package push

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A reader that sees a head, but does not see its newest page yet, skips no entry.
func TestAPageThatIsNotVisibleYet_HasNotExpired(t *testing.T) {
	var reads atomic.Int64
	var old atomic.Bool
	r := newRig(t, embedded.Options{Stale: func() int {
		if !old.Load() {
			return 0
		}
		if n := reads.Add(1); n == 2 || n == 3 { // read 1 reads the head; reads 2 and 3 read its newest page
			return 1 // return the state of one commit earlier, when the page did not exist
		}
		return 0
	}})
	stream := repositorytest.NewStream()
	writer, reader := r.node(Options{}), r.node(Options{})
	var all []domain.Message
	for range 30 {
		m := repositorytest.Messages(1)
		m[0].Payload = make([]byte, 600)
		_, err := writer.Append(t.Context(), stream, m)
		require.NoError(t, err)
		all = append(all, m...)
		if h := writer.appenders.newestHead(stream); h.tailOf(0).Page > 0 {
			break
		}
	}
	require.Positive(t, writer.appenders.newestHead(stream).tailOf(0).Page, "the last append has created a page")
	old.Store(true)
	found, err := reader.Read(t.Context(), stream, domain.Position{}, 100)
	require.NoError(t, err)
	require.Zero(t, found.Start.Number)
	require.Len(t, found.Entries, len(all))
	require.Greater(t, reads.Load(), int64(3))
}

// A staleReads makes one read stale by s.commits commits: the read that follows the first s.after reads.
type staleReads struct{ commits, after atomic.Int64 }

func (s *staleReads) next() int {
	if s.after.Add(-1) != -1 {
		return 0
	}
	return int(s.commits.Load())
}

// forEach runs test 16 times. In each run, one of the first four reads is stale by zero to three commits.
// All other reads are current.
func (s *staleReads) forEach(test func()) {
	for read := range int64(4) {
		for commits := range int64(4) {
			s.commits.Store(commits)
			s.after.Store(read)
			test()
		}
	}
	s.after.Store(-1)
}

func TestCurrentEnd_IsNeverStale(t *testing.T) {
	reads := &staleReads{}
	r := newRig(t, embedded.Options{Stale: reads.next})
	writer, reader := r.node(Options{SegmentBytes: 2000}), r.node(Options{})
	stream := repositorytest.NewStream()
	for n := range 12 { // append messages until the stream has several segments
		reads.forEach(func() {
			end, err := reader.CurrentEnd(t.Context(), stream)
			require.NoError(t, err)
			got := int64(0)
			for _, p := range end.Positions {
				got += p.Number
			}
			require.EqualValues(t, n, got)
		})
		m := repositorytest.Messages(1)
		m[0].Payload = make([]byte, 600)
		_, err := writer.Append(t.Context(), stream, m)
		require.NoError(t, err)
	}
	h, err := reader.lastHead(t.Context(), reader.client.Begin("test"), stream)
	require.NoError(t, err)
	require.Positive(t, h.segment)
}

func TestAMessage_IsFoundInASegmentThatIsNotVisibleYet(t *testing.T) {
	reads := &staleReads{}
	r := newRig(t, embedded.Options{Stale: reads.next})
	writer, reader := r.node(Options{SegmentBytes: 1000}), r.node(Options{})
	stream := repositorytest.NewStream()
	for n := range 6 {
		m := repositorytest.Messages(1)
		m[0].ID, m[0].Payload = fmt.Sprint(n), make([]byte, 600)
		_, err := writer.Append(t.Context(), stream, m)
		require.NoError(t, err)
		reads.forEach(func() {
			_, err = reader.Find(t.Context(), stream, m[0].ID)
			require.NoError(t, err)
		})
	}
}

// A deletion must find a new subscription, because an owner treats NotFound as a completed deletion.
func TestADeletion_FindsASubscriptionThatIsNotVisibleYet(t *testing.T) {
	reads := &staleReads{}
	r := newRig(t, embedded.Options{Consistency: "Session", Stale: reads.next})
	writer, node := r.otherStore(), r.node(Options{})
	reads.after.Store(-1)
	owner := repositorytest.NewActor()
	for commits := range int64(4) {
		for read := range int64(4) {
			d := r.createDefinition(writer, repositorytest.NewDefinition(owner))
			reads.commits.Store(commits)
			reads.after.Store(read)
			require.NoError(t, node.DeleteSubscription(t.Context(), owner, d.ID, ""), "read %d is %d commits old", read, commits)
			reads.after.Store(-1)
			err := node.DeleteSubscription(t.Context(), owner, d.ID, "")
			require.Equal(t, domain.NotFound, domain.KindOf(err))
		}
	}
	another := r.createDefinition(writer, repositorytest.NewDefinition(owner))
	err := node.DeleteSubscription(t.Context(), repositorytest.NewActor(), another.ID, "")
	require.Equal(t, domain.NotFound, domain.KindOf(err), "it is that of another owner")
}

// When the shard entry of a cursor records a change, a node reads the current definition. With a stale
// definition, it could delete the entry without applying the change.
func TestACurrentWatchOrSubscription_IsNeverStale(t *testing.T) {
	reads := &staleReads{}
	r := newRig(t, embedded.Options{Stale: reads.next})
	writer, reader := r.node(Options{}), r.node(Options{})
	resource, err := domain.Kept(repositorytest.NewActor().String())
	require.NoError(t, err)
	now := time.Now().UTC().Truncate(time.Second)
	w := &repository.Watch{ID: domain.NewWatchID(now, [10]byte{1}), Owner: repositorytest.NewActor(), Resource: resource, CallbackURL: "https://example.org/0", Created: now}
	require.NoError(t, writer.CreateWatch(t.Context(), w))
	d := repositorytest.NewDefinition(w.Owner)
	created, _, err := writer.CreateSubscription(t.Context(), d)
	require.NoError(t, err)
	for n := range 3 {
		reads.forEach(func() {
			found, err := reader.CurrentWatch(t.Context(), w.Owner, w.ID)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("https://example.org/%d", n), found.CallbackURL)
			subscription, err := reader.CurrentSubscription(t.Context(), d.ID)
			require.NoError(t, err)
			require.Equal(t, created.CallbackURL, subscription.CallbackURL)
		})
		stored, err := writer.Watch(t.Context(), w.Owner, w.ID)
		require.NoError(t, err)
		stored.CallbackURL = fmt.Sprintf("https://example.org/%d", n+1)
		require.NoError(t, writer.ReplaceWatch(t.Context(), stored))
		created, err = writer.Subscription(t.Context(), d.ID)
		require.NoError(t, err)
		created.CallbackURL = stored.CallbackURL
		_, err = writer.ReplaceSubscription(t.Context(), created)
		require.NoError(t, err)
	}
	require.NoError(t, writer.DeleteWatch(t.Context(), w.Owner, w.ID))
	require.NoError(t, writer.DeleteSubscription(t.Context(), w.Owner, d.ID, ""))
	reads.forEach(func() {
		_, err := reader.CurrentWatch(t.Context(), w.Owner, w.ID)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		_, err = reader.CurrentSubscription(t.Context(), d.ID)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
	})
}

// A creation that finds the subscription returns its current definition, or fails if the subscription was
// deleted. The caller may not write anything afterwards, so no later write would detect a stale read.
func TestARepeatedCreation_IsNeverStale(t *testing.T) {
	reads := &staleReads{}
	r := newRig(t, embedded.Options{Consistency: "Session", Stale: reads.next})
	reads.after.Store(-1)
	writer, node := r.otherStore(), r.node(Options{})
	d := repositorytest.NewDefinition(repositorytest.NewActor())
	current := r.createDefinition(writer, d)
	for n := range 3 {
		reads.forEach(func() {
			found, created, err := node.CreateSubscription(t.Context(), d)
			require.NoError(t, err)
			require.False(t, created)
			require.Equal(t, current.CallbackURL, found.CallbackURL)
		})
		var err error
		current, err = writer.Subscription(t.Context(), d.ID)
		require.NoError(t, err)
		current.CallbackURL = fmt.Sprintf("https://example.org/%d", n)
		_, err = writer.ReplaceSubscription(t.Context(), current)
		require.NoError(t, err)
	}
	require.NoError(t, writer.DeleteSubscription(t.Context(), d.Owner, d.ID, ""))
	reads.forEach(func() {
		_, _, err := node.CreateSubscription(t.Context(), d)
		require.Equal(t, domain.Conflict, domain.KindOf(err))
	})
}
