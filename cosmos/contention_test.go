package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// These tests check that a caller that retries eventually succeeds.

func TestALeader_LeadsUntilItsOwnSaveIsDone(t *testing.T) {
	s := newTrust(t)
	node, line := s.tappedNode(Options{DrawerCapacity: 100, Retries: -1})
	s.save(node, 0, repositorytest.Events(1, s.actor))
	reserves, mayReserve := make(chan struct{}), make(chan struct{})
	commits, mayCommit := make(chan struct{}), make(chan struct{})
	var heads atomic.Int32
	var broken atomic.Bool
	line.setBefore(func(req *http.Request) error {
		if broken.Load() {
			return faulty.ErrLost
		}
		if isHeadReplacement(req) {
			switch heads.Add(1) {
			case 1:
				close(reserves)
				<-mayReserve
			case 2: // this write commits the first Save, and reserves numbers for the second
				close(commits)
				<-mayCommit
				defer broken.Store(true)
			}
		}
		return nil
	})
	w := node.writers.acquire(s.actor)
	defer node.writers.release(w)
	queued := func() {
		require.Eventually(t, func() bool { return w.leader.Queued() == 1 }, time.Minute, time.Millisecond)
	}
	save := func(ctx context.Context) <-chan error {
		outcome := make(chan error, 1)
		go func() {
			_, err := node.Save(ctx, s.actor, repositorytest.Events(1, s.actor))
			outcome <- err
		}()
		return outcome
	}
	first := save(context.Background())
	<-reserves
	ctx, giveUp := context.WithCancel(context.Background())
	second := save(ctx)
	queued()
	close(mayReserve)
	<-commits // the node has begun the write that reserves numbers for the second Save
	giveUp()
	require.Equal(t, domain.Uncertain, domain.KindOf(<-second))
	third := save(context.Background())
	queued()
	close(mayCommit) // all later requests of the node fail
	<-first
	require.Error(t, <-third, "it leads the round of the second, and then its own")
}

// A slowLine delays each request.
type slowLine struct {
	next  faulty.Doer
	delay func(*http.Request) time.Duration
}

func (l slowLine) Do(req *http.Request) (*http.Response, error) {
	if faulty.IsForDocuments(req) && !client.Sleep(req.Context(), l.delay(req)) {
		return nil, faulty.ErrLost
	}
	return l.next.Do(req)
}

// slowNode starts a node whose requests are delayed.
func (r *rig) slowNode(opts Options, delay func(*http.Request) time.Duration) *Repository {
	r.t.Helper()
	db := r.account.ConnectBy(slowLine{r.line, delay})
	return New(db, r.content, opts)
}

func TestBusyNode_LetsAnotherNodeSave(t *testing.T) {
	eachTail(t, func(t *testing.T, tails int) {
		synctest.Test(t, func(t *testing.T) {
			s := newTrust(t)
			delay := func(*http.Request) time.Duration { return 5 * time.Millisecond }
			busy, other := s.slowNode(Options{TailEvents: tails}, delay), s.slowNode(Options{TailEvents: tails}, delay)
			done := make(chan struct{})
			var callers sync.WaitGroup
			for i := range 4 { // several callers, so that the head always has an intent
				callers.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
							s.save(busy, i, repositorytest.Events(1, s.actor))
						}
					}
				})
			}
			client.Sleep(t.Context(), time.Second)
			for range 5 {
				began := time.Now()
				s.save(other, 9, repositorytest.Events(1, s.actor))
				assert.Less(t, time.Since(began), 2*time.Second)
			}
			close(done)
			callers.Wait()
			assert.Zero(t, counterValue(t, other.metrics.repairs.WithLabelValues("rollback")), "no Save had to be rolled back")
			s.drainAll()
		})
	})
}

func TestSavesThatOutlastTheLease_Succeed(t *testing.T) {
	eachTail(t, func(t *testing.T, tails int) {
		synctest.Test(t, func(t *testing.T) {
			s := newTrust(t)
			delay := func(req *http.Request) time.Duration {
				if req.Header.Get("x-ms-cosmos-is-batch-request") != "" {
					return 3 * time.Second
				}
				return 5 * time.Millisecond
			}
			minutes := 2
			if raced {
				minutes = 1
			}
			end := time.Now().Add(time.Duration(minutes) * time.Minute)
			var nodes sync.WaitGroup
			var saved [2]int
			for i := range saved {
				node := s.slowNode(Options{TailEvents: tails}, delay)
				nodes.Go(func() {
					for time.Now().Before(end) {
						batch := repositorytest.Events(5, s.actor)
						s.ledger.Unsure(i, batch...)
						for {
							if _, err := node.Save(context.Background(), s.actor, batch); err == nil {
								break
							}
						}
						s.ledger.Saved(i, batch...)
						saved[i]++
					}
				})
			}
			nodes.Wait()
			assert.Greater(t, min(saved[0], saved[1]), 2*minutes, "saved %v in %d minutes", saved, minutes)
			s.drainAll()
		})
	})
}

func TestASaveOfAThousandKinds_SucceedsUnderThrottling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTrust(t)
		node := s.slowNode(Options{}, func(*http.Request) time.Duration { return 20 * time.Millisecond })
		random := seeded(1)
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if isWrite(req) && random()%15 == 0 {
				return faulty.Throttled
			}
			return faulty.None
		})
		kinds := make([]domain.Event, maxCabinets)
		for i := range kinds {
			kinds[i] = repositorytest.Event(s.actor, repositorytest.WithContentType(fmt.Sprintf("kind-%d", i)))
		}
		s.save(node, 0, kinds)

		// The next Save rolls back a large Save whose node died.
		dying, line := s.tappedNode(Options{Retries: -1})
		dead := atNth(1500, isWrite, func() error { return faulty.ErrLost })
		line.setBefore(dead)
		for i := range kinds {
			kinds[i] = repositorytest.Event(s.actor, repositorytest.WithContentType(fmt.Sprintf("kind-%d", i)))
		}
		s.line.Break(nil)
		_, err := dying.Save(context.Background(), s.actor, kinds)
		require.Error(t, err)
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if isWrite(req) && random()%15 == 0 {
				return faulty.Throttled
			}
			return faulty.None
		})
		s.save(node, 1, repositorytest.Events(1, s.actor, repositorytest.WithContentType("kind-1")))
		s.line.Break(nil)
		require.NoError(t, s.auditMailbox(s.actor))
	})
}
