package push

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A pagedLife creates the cursors of two watches in a shard, on a connection that may break. The first
// watch has a delivery that fails and then succeeds. At the end, both cursors are retired. Calls that
// fail are repeated.
type pagedLife struct {
	*testing.T
	*rig
	stream  domain.StreamName
	watches [2]domain.CursorID
	next    int // step
}

const pagedShard = 5

var watchPolicy = domain.WatchPolicy(time.Hour, 5)

func newPagedLife(t *testing.T, r *rig) *pagedLife {
	l := &pagedLife{T: t, rig: r, stream: repositorytest.NewStream()}
	for i := range l.watches {
		l.watches[i] = repositorytest.NewWatchCursorID(pagedShard)
	}
	return l
}

// runStep makes one step. A repeated step has no further effect.
func (l *pagedLife) runStep(s *Store, step int) error {
	ctx := context.Background()
	switch step {
	case 0, 1:
		err := s.Create(ctx, l.watches[step], domain.Standing{Stream: l.stream})
		if domain.KindOf(err) == domain.Conflict {
			return nil
		}
		return err
	case 2:
		return l.callReceiver(s, 500)
	case 3:
		return l.callReceiver(s, 200)
	default:
		return l.retireCursor(s, l.watches[5-step])
	}
}

func (l *pagedLife) open(s *Store, id domain.CursorID) (*domain.Cursor, repository.CursorVersion, error) {
	return s.Load(context.Background(), id, domain.Owner{Incarnation: s.client.NewID(), Limit: 4, Policy: watchPolicy}, func() time.Time { return time.Now().Add(time.Duration(l.next) * time.Hour) })
}

// callReceiver delivers the first entry to the first watch, unless this delivery is already complete.
// Then it removes the shard entry of the cursor.
func (l *pagedLife) callReceiver(s *Store, status int) error {
	c, version, err := l.open(s, l.watches[0])
	if err != nil {
		return err
	}
	if n := c.Standing().Counters; n.Delivered > 0 || n.Attempts > 0 && status == 500 {
		if status == 500 {
			return nil
		}
	} else if n.Triggered == 0 {
		c.Take(domain.Position{}, true)
	}
	now := time.Now().Add(time.Duration(l.next) * time.Hour)
	if call, ok := c.Next(now); ok && call.Claim { // the previous owner has crashed, so a claim is stored before the call
		if version, err = s.Settle(context.Background(), l.watches[0], version, c.Settlement()); err != nil {
			return err
		}
		c.Stored()
	}
	if call, ok := c.Next(now); ok {
		c.Begin(call)
		c.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: now, Answer: domain.Answer{Began: now, Status: status}})
	}
	c.Unlist(0)
	_, err = s.Settle(context.Background(), l.watches[0], version, c.Settlement())
	return err
}

func (l *pagedLife) retireCursor(s *Store, id domain.CursorID) error {
	c, version, err := l.open(s, id)
	if domain.KindOf(err) == domain.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	c.Cancel(10)
	if version, err = s.Settle(context.Background(), id, version, c.Settlement()); err != nil {
		return err
	}
	return s.Retire(context.Background(), id, version)
}

func (l *pagedLife) runLife(s *Store, again int) error {
	for l.next < 6 {
		err := l.runStep(s, l.next)
		if err == nil {
			l.next++
			continue
		}
		if again--; again < 0 {
			return err
		}
		<-time.After(time.Second)
	}
	return nil
}

// checkRules requires that a node with an empty memory finds each cursor with outstanding deliveries.
func (l *pagedLife) checkRules(s *Store, about string) {
	ctx := context.Background()
	entries, watched, err := s.Cursors(ctx, pagedShard)
	require.NoError(l, err, about)
	var paged []domain.CursorID
	for _, w := range watched {
		page, err := s.WatchPage(ctx, pagedShard, w.Stream, 0)
		if domain.KindOf(err) != domain.NotFound {
			require.NoError(l, err, about)
			require.Zero(l, page.Served, about)
			paged = page.Cursors
		}
	}
	for _, id := range l.watches {
		standing, err := s.Standing(ctx, id)
		doc, readErr := s.readCursor(ctx, s.client.Begin("test"), id)
		if domain.KindOf(err) == domain.NotFound || readErr == nil && doc.Retired {
			continue
		}
		require.NoError(l, err, about)
		require.Contains(l, paged, id, about)
		if standing.Outstanding() > 0 {
			require.True(l, slices.ContainsFunc(entries, func(e repository.ShardEntry) bool { return e.Cursor == id }), about)
		}
	}
}

// wantEnded requires that the shard lists no cursor of the two watches.
func (l *pagedLife) wantEnded(s *Store, about string) {
	entries, watched, err := s.Cursors(context.Background(), pagedShard)
	require.NoError(l, err, about)
	require.Empty(l, entries, about)
	for _, w := range watched { // after a crash, the shard may list a stream without a page
		_, err := s.WatchPage(context.Background(), pagedShard, w.Stream, 0)
		require.Equal(l, domain.NotFound, domain.KindOf(err), about)
	}
}

func TestWatchPages_SurviveACrashAtEachRequest(t *testing.T) {
	for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(last.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					l := newPagedLife(t, newRig(t, embedded.Options{}))
					l.line.CrashAt(n, last)
					err := l.runLife(l.node(Options{Retries: -1}), 0)
					crashed := l.line.Fired() > 0
					l.line.Break(nil)
					about := fmt.Sprintf("a crash at request %d", n)
					s := l.node(Options{})
					l.checkRules(s, about)
					if crashed {
						require.NoError(t, l.runLife(s, 3), about)
					} else {
						require.NoError(t, err)
					}
					l.wantEnded(s, about)
					if !crashed {
						require.Greater(t, n, 40)
						return
					}
				}
			})
		})
	}
}

// A hookTransport passes each request to a function before it sends the request.
type hookTransport struct {
	next   policy.Transporter
	before func(*http.Request)
}

func (l *hookTransport) Do(req *http.Request) (*http.Response, error) {
	l.before(req)
	return l.next.Do(req)
}

// An owner is slow to remove the shard entry of a watch. Before the slow delete, another owner lists the
// watch again. The delete must be refused.
func TestAnEntryThatALaterOwnerNeeds_IsNotRemoved(t *testing.T) {
	l := newPagedLife(t, newRig(t, embedded.Options{}))
	other := l.node(Options{})
	require.NoError(t, l.runStep(other, 0))
	require.NoError(t, l.runStep(other, 2))
	overtaken := false
	slow := New(l.account.ConnectBy(&hookTransport{l.line, func(req *http.Request) {
		if req.Method != http.MethodDelete || overtaken {
			return
		}
		overtaken = true
		c, version, err := l.open(other, l.watches[0])
		require.NoError(t, err)
		c.Take(domain.Position{EntryID: domain.EntryID{Number: 1}}, true)
		now := time.Now()
		call, ok := c.Next(now)
		require.True(t, ok)
		if call.Claim {
			version, err = other.Settle(t.Context(), l.watches[0], version, c.Settlement())
			require.NoError(t, err)
			c.Stored()
			call, _ = c.Next(now)
		}
		c.Begin(call)
		c.Settle(domain.Outcome{Entry: call.EntryID, Published: now, Answer: domain.Answer{Began: now, Status: 500}})
		_, err = other.Settle(t.Context(), l.watches[0], version, c.Settlement())
		require.NoError(t, err)
	}}), l.content, Options{})
	l.next = 3
	require.NoError(t, l.runStep(slow, 3))
	require.True(t, overtaken)
	l.checkRules(other, "after both")
}

// A slow node has added the cursor of a watch to a page, but has not created the cursor yet. Another node
// finds no cursor and marks the page as served, before or after a repeated call creates the cursor.
func TestThePageOfACursorCreatedLate_IsServedUpToItsPosition(t *testing.T) {
	for _, isMarkedFirst := range []bool{true, false} {
		l := newPagedLife(t, newRig(t, embedded.Options{}))
		other := l.node(Options{})
		l.line.CrashAt(5, faulty.RequestLost) // request 5 creates the cursor
		require.Error(t, l.runStep(l.node(Options{Retries: -1}), 0))
		l.line.Break(nil)
		page, err := other.WatchPage(t.Context(), pagedShard, l.stream, 0)
		require.NoError(t, err)
		require.Equal(t, []domain.CursorID{l.watches[0]}, page.Cursors)
		mark := func() error {
			return other.MarkServed(t.Context(), pagedShard, l.stream, 0, page.Version, 3)
		}
		if isMarkedFirst {
			require.NoError(t, mark())
		}
		require.NoError(t, l.runStep(other, 0))
		if !isMarkedFirst {
			require.Equal(t, domain.Conflict, domain.KindOf(mark()))
		}
		l.checkRules(other, "after both") // the page must be visited again, because the new cursor needs it
	}
}
