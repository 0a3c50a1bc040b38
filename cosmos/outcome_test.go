package cosmos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// These tests check the kind of an error, which tells the caller whether to repeat the call. An error
// must not claim an outcome that the node does not know.

func TestACommitWithoutAReply_IsUncertain(t *testing.T) {
	eachTail(t, func(t *testing.T, tails int) {
		commit := 2
		if tails > 0 {
			commit = 1 // a small Save reserves nothing, so the commit is its first write
		}
		for _, then := range []faulty.Fault{faulty.Throttled, faulty.Unavailable, faulty.RequestLost} {
			t.Run("then "+then.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newTrust(t)
					node := s.node(Options{DrawerCapacity: 10, TailEvents: tails, Retries: 3}, false)
					s.save(node, 0, repositorytest.Events(1, s.actor))
					batch := repositorytest.Events(1, s.actor)
					heads, lost := 0, false
					s.line.Break(func(_ int, req *http.Request) faulty.Fault {
						if isHeadReplacement(req) {
							heads++
							if heads == commit {
								lost = true
								return faulty.ReplyLostAfter // the commit is applied, its reply is lost
							}
							return faulty.None // the store refuses the repeated commit
						}
						if lost {
							return then // the head cannot be read back
						}
						return faulty.None
					})
					_, err := node.Save(context.Background(), s.actor, batch)
					require.Equal(t, domain.Uncertain, domain.KindOf(err), "%v", err)
					s.line.Break(nil)
					saved, err := node.Save(context.Background(), s.actor, batch)
					require.NoError(t, err)
					assert.Equal(t, repository.Saved{Duplicates: 1}, saved, "it had happened")
				})
			})
		}
	})
}

func TestOneStaleRead_IsNoDamage(t *testing.T) {
	var old atomic.Bool
	s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: func() int {
		if old.Load() {
			return 40
		}
		return 0
	}})}
	s.save(s.node(Options{DrawerCapacity: 2}, false), 0, repositorytest.Events(5, s.actor))
	impatient, line := s.tappedNode(Options{DrawerCapacity: 2, Retries: -1})
	line.setBefore(func(req *http.Request) error {
		old.Store(strings.Contains(req.URL.Path, "/colls/"+cabinetContainer+"/") && isQuery(req))
		return nil
	})
	_, err := impatient.Save(context.Background(), s.actor, repositorytest.Events(1, s.actor))
	assert.Equal(t, domain.Busy, domain.KindOf(err), "%v", err)
}

func TestAContainerThatIsMissingIsNotTakenForMissingData(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	db, err := client.Connect(client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	require.NoError(t, err)
	defer db.Close()
	node, actor, ctx := New(db, memory.NewContent(), Options{}), repositorytest.NewActor(), context.Background()

	_, err = node.NextUnacknowledged(ctx, actor, allGroups[:1])
	assert.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
	_, err = node.Acknowledge(ctx, actor, repositorytest.NewBundleID())
	assert.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
	_, err = node.Save(ctx, actor, repositorytest.Events(1, actor))
	assert.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
	assert.ErrorContains(t, err, "create it first")
}

// A brokenContent fails to store objects while broken is set.
type brokenContent struct {
	repository.Content
	broken atomic.Bool
}

func (c *brokenContent) Put(ctx context.Context, name string, r io.Reader) error {
	if c.broken.Load() {
		return domain.Errorf(domain.Unavailable, "content: out of reach")
	}
	return c.Content.Put(ctx, name, r)
}

func TestAnOutageOfTheContentStoreLeavesNothingBehind(t *testing.T) {
	s := newTrust(t)
	content := &brokenContent{Content: s.content}
	s.content = content
	node := s.node(small, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))
	batch := repositorytest.Events(1, s.actor, repositorytest.WithPayload(`{"a":1}`))
	content.broken.Store(true)
	for range 5 {
		_, err := node.Save(context.Background(), s.actor, batch)
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
	}
	content.broken.Store(false)
	s.save(node, 0, batch)
	h, err := node.beginCall("test").readHead(context.Background(), s.actor)
	require.NoError(t, err)
	assert.Equal(t, 1, h.Cabinets[nameOf(batch[0].Cabinet())].Ordinal, "no drawer was given up")
	s.drainAll()
}

func TestAFaultOfOneCaller_DoesNotFailOtherCallers(t *testing.T) {
	s := newTrust(t)
	content := &pickyContent{Content: s.content}
	s.content = content
	node, line := s.tappedNode(small)
	reserves, mayReserve := make(chan struct{}), make(chan struct{})
	line.setBefore(atNth(1, isWrite, func() error { close(reserves); <-mayReserve; return nil }))
	first := make(chan error, 3)
	save := func(e domain.Event) {
		_, err := node.Save(context.Background(), s.actor, []domain.Event{e})
		first <- err
	}
	go save(repositorytest.Event(s.actor))
	<-reserves
	w := node.writers.acquire(s.actor)
	defer node.writers.release(w)
	go save(repositorytest.Event(s.actor, repositorytest.WithPayload(`"good"`)))
	go save(repositorytest.Event(s.actor, repositorytest.WithPayload(`"bad"`)))
	require.Eventually(t, func() bool { return w.leader.Queued() == 2 }, time.Minute, time.Millisecond)
	close(mayReserve)
	refused := 0
	for range 3 {
		if err := <-first; err != nil {
			refused++
			assert.ErrorContains(t, err, "too bad")
		}
	}
	assert.Equal(t, 1, refused)
}

// A pickyContent refuses payloads that contain "bad".
type pickyContent struct{ repository.Content }

func (c *pickyContent) Put(ctx context.Context, name string, r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if strings.Contains(string(text), "bad") {
		return domain.Errorf(domain.Invalid, "content: too bad")
	}
	return c.Content.Put(ctx, name, strings.NewReader(string(text)))
}

func TestAShortBundle_DoesNotReadSixDrawers(t *testing.T) {
	t.Parallel()
	s := newTrust(t)
	capacity := 500
	if raced { // consecutive Saves have no races to detect
		capacity = 100
	}
	node := s.node(Options{DrawerCapacity: capacity}, false)
	for i := range 6 * capacity { // each event has its own Save, and so its own page
		e := repositorytest.Event(s.actor)
		e.SupportsBundling = i%4 != 0
		_, err := node.Save(context.Background(), s.actor, []domain.Event{e})
		require.NoError(t, err)
	}
	before := s.engine.Requests()
	b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	_, err = node.Acknowledge(context.Background(), s.actor, b.ID)
	require.NoError(t, err)
	b, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	require.NoError(t, err)
	assert.Equal(t, 3, b.Count)
	assert.Less(t, s.engine.Requests()-before, int64(25))
}

func TestAPanic_FailsOneSaveAndNotTheRecipient(t *testing.T) {
	s := newTrust(t)
	var broken atomic.Bool
	random := seeded(1)
	node := s.node(Options{DrawerCapacity: 10, Exclusive: true, Random: func() uint64 {
		if broken.CompareAndSwap(true, false) {
			panic("a bug")
		}
		return random()
	}}, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))
	broken.Store(true)
	assert.Panics(t, func() { _, _ = node.Save(context.Background(), s.actor, repositorytest.Events(1, s.actor)) })
	s.save(node, 0, repositorytest.Events(2, s.actor))
	s.drainAll()
}

// Three Saves are queued behind another one. They cannot be stored together, so each is retried alone, and
// the retry of one panics.
func TestAPanicInASaveThatIsRetriedAlone_FailsNoOtherSave(t *testing.T) {
	s := newTrust(t)
	content := &pickyContent{Content: s.content}
	s.content = content
	random := seeded(1)
	var w *recipientWriter // Random panics while w retries a Save alone
	node, line := s.tappedNode(Options{DrawerCapacity: 10, Exclusive: true, Random: func() uint64 {
		if w != nil && w.alone {
			panic("a bug")
		}
		return random()
	}})
	s.save(node, 0, repositorytest.Events(1, s.actor))
	w = node.writers.acquire(s.actor)
	defer node.writers.release(w)
	reserves, mayReserve := make(chan struct{}), make(chan struct{})
	line.setBefore(atNth(1, isWrite, func() error { close(reserves); <-mayReserve; return nil }))
	first, outcomes := make(chan error, 1), make(chan error, 3)
	save := func(outcome chan<- error, e domain.Event) {
		defer func() {
			if p := recover(); p != nil {
				outcome <- domain.Errorf(domain.Uncertain, "panicked: %v", p)
			}
		}()
		_, err := node.Save(context.Background(), s.actor, []domain.Event{e})
		outcome <- err
	}
	go save(first, repositorytest.Event(s.actor))
	<-reserves
	for _, text := range []string{`"good"`, `"bad"`, `"good"`} {
		go save(outcomes, repositorytest.Event(s.actor, repositorytest.WithPayload(text)))
	}
	require.Eventually(t, func() bool { return w.leader.Queued() == 3 }, time.Minute, time.Millisecond)
	close(mayReserve)
	require.NoError(t, <-first)
	panicked := 0
	for range 3 {
		err := <-outcomes
		require.Equal(t, domain.Uncertain, domain.KindOf(err), "%v", err)
		if strings.HasPrefix(err.Error(), "panicked") {
			panicked++
		}
	}
	require.Equal(t, 1, panicked, "the caller that led")
	s.save(node, 0, repositorytest.Events(1, s.actor))
}

// A busyAccount responds with 429 and a Retry-After of one minute.
type busyAccount struct{ next faulty.Doer }

func (a busyAccount) Do(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.Path, "/docs") {
		return a.next.Do(req)
	}
	resp, err := faulty.Throttled.Do(a.next, req)
	resp.Header.Set("x-ms-retry-after-ms", "60000")
	return resp, err
}

func TestACallWithoutTimeForTheRequestedWait_FailsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTrust(t)
		db := s.account.ConnectBy(busyAccount{s.engine.Transport()})
		node, began := New(db, s.content, Options{}), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := node.NextUnacknowledged(ctx, s.actor, allGroups)
		require.Equal(t, domain.Busy, domain.KindOf(err), "%v", err)
		require.Zero(t, time.Since(began))
	})
}

// TestReadingAnIndex_ResumesAfterAFailure reads the filters of many drawers. In each attempt,
// the store returns only a few of them.
func TestReadingAnIndex_ResumesAfterAFailure(t *testing.T) {
	t.Run("by a node that knows nothing", func(t *testing.T) { resumeReading(t, 0) })
	t.Run("by a node that knows how it began", func(t *testing.T) { resumeReading(t, 1) })
}

// resumeReading lets a node read all drawers of a cabinet in several attempts. known is the number of
// drawers, from the first one on, that the node knows already.
func resumeReading(t *testing.T, known int) {
	const few = 3
	s := newTrust(t)
	tiny := Options{DrawerCapacity: 1, Retries: -1, Exclusive: true}
	node := s.node(Options{DrawerCapacity: 1, Retries: 1, Exclusive: true}, false) // one retry, for the stale head in its memory
	for range known {
		s.save(node, 0, repositorytest.Events(1, s.actor))
	}
	dying, line := s.tappedNode(tiny)
	// The commit is the second write of the head, after the reservation. Without a head, the reservation
	// creates it, so the commit is the first replacement.
	var dead atomic.Bool // set at the commit
	commit := atNth(1+known, isHeadReplacement, func() error { dead.Store(true); return nil })
	line.setBefore(func(req *http.Request) error {
		if _ = commit(req); dead.Load() {
			return faulty.ErrLost
		}
		return nil
	})
	_, err := dying.Save(t.Context(), s.actor, repositorytest.Events(2, s.actor))
	require.Error(t, err, "its drawers are empty for ever")
	s.save(s.node(Options{DrawerCapacity: 1, Exclusive: true}, false), 0, repositorytest.Events(4*few+1, s.actor))
	again := repositorytest.Events(1, s.actor)
	c := s.node(tiny, false).beginCall("test")
	h, err := c.readHead(t.Context(), s.actor)
	require.NoError(t, err)
	cabinet := again[0].Cabinet()
	all, err := c.readExtents(t.Context(), cabinet, h.Cabinets[nameOf(cabinet)], 1, 0)
	require.NoError(t, err)
	drawers := slices.DeleteFunc(slices.Clone(all), func(e extent) bool { return e.limit == 0 })
	require.Len(t, drawers, len(all)-2)
	drawers = drawers[known:]
	for attempt := range 4 {
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			isRead := strings.HasSuffix(req.URL.Path, "/docs/"+filterID) && req.Method == http.MethodGet
			if isRead && !slices.ContainsFunc(drawers[attempt*few:(attempt+1)*few], func(e extent) bool {
				return strings.Contains(fmt.Sprint(req.Header), e.drawer)
			}) {
				return faulty.Unavailable
			}
			return faulty.None
		})
		_, err = node.Save(t.Context(), s.actor, again)
		if attempt < 3 {
			require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		}
	}
	require.NoError(t, err)
	s.line.Break(nil)
	s.ledger.Saved(0, again...)
	s.drainAll()
}

func TestATemporaryFailure_IsRetried(t *testing.T) {
	for _, only := range []faulty.Fault{faulty.SessionBehind, faulty.Moving, faulty.Gone} {
		t.Run(only.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTrust(t)
				node := s.node(Options{Retries: 200}, false)
				met := make(map[string]bool)
				s.line.Break(func(_ int, req *http.Request) faulty.Fault {
					isRead := req.Method == http.MethodGet || req.Header.Get("X-Ms-Documentdb-Query") != ""
					what := req.Method + req.URL.Path + req.Header.Get("X-Ms-Documentdb-Query")
					if met[what] || isRead != (only == faulty.SessionBehind) {
						return faulty.None
					}
					met[what] = true
					return only
				})
				events := repositorytest.Events(3, s.actor)
				_, err := node.Save(context.Background(), s.actor, events)
				require.NoError(t, err)
				got, err := repositorytest.Drain(context.Background(), s.stores(node), s.actor, allGroups)
				require.NoError(t, err)
				require.Len(t, got, 1)
				require.Len(t, got[0].Events, 3)
				require.Greater(t, s.line.Fired(), 2)
			})
		})
	}
}
