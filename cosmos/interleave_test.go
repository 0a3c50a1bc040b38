package cosmos

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// The interleaving test runs two processes on one recipient, and interleaves their requests in every order
// with a limited number of interruptions. In no order may an event be lost, duplicated or delivered out
// of order.

// A party is a process that makes one call, and repeats it until it succeeds.
type party struct {
	name  string
	does  func(w *world, node *Repository) error
	loses int // number of the write whose reply is lost; 0: no reply is lost
}

// A world is one run: a store, the parties, and one order of requests.
type world struct {
	*testing.T
	*rig
	actor     domain.ActorID
	ledger    repositorytest.Ledger
	dequeued  []repositorytest.PeekedBundle
	requested requestedBundle
	shared    *memory.Content
	tails     []int                      // Options.TailEvents, assigned to the parties in rotation; empty: no tails
	kept      map[domain.BundleID]string // name of the object in the content folder of each peeked bundle

	parties []party

	path    []int // path[n] is the index of the waiting request to send at choice n
	options []int // options[n] is the number of waiting requests at choice n
	mu      sync.Mutex
	waiting []*heldRequest
	running int
}

// A heldRequest is a request that waits until the world sends it.
type heldRequest struct {
	party int
	key   string
	turn  chan struct{}
}

// A turnstile is the connection of one party to the store. It holds each request until the world sends it.
type turnstile struct {
	w      *world
	party  int
	next   faulty.Doer
	writes int // number of writes sent so far
}

func (l *turnstile) Do(req *http.Request) (*http.Response, error) {
	h := &heldRequest{party: l.party, key: req.Method + " " + req.URL.Path + bodyOf(req), turn: make(chan struct{})}
	l.w.mu.Lock()
	l.w.waiting = append(l.w.waiting, h)
	l.w.mu.Unlock()
	select {
	case <-h.turn:
		if isWrite(req) {
			if l.writes++; l.writes == l.w.parties[l.party].loses {
				return faulty.ReplyLostAfter.Do(l.next, req)
			}
		}
		return l.next.Do(req)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// bodyOf returns the body of a request. It distinguishes requests with the same URL, and is the same in
// every run.
func bodyOf(req *http.Request) string {
	if req.Body == nil {
		return ""
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err.Error()
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

// run runs the parties until all of them are done, and sends their requests in the order of w.path. After
// the end of w.path, no party interrupts another.
func (w *world) run(parties []party) {
	w.parties = parties
	for i, p := range parties {
		db, err := client.Connect(client.Connection{Endpoint: w.engine.Endpoint(), Key: w.engine.Key(), Transport: &turnstile{w: w, party: i, next: w.line}})
		require.NoError(w, err)
		defer db.Close()
		node := New(db, w.content, Options{
			DrawerCapacity: 2, TailEvents: w.tailOf(i), Random: seeded(uint64(i) + 1), Retention: 1, SweepEvery: -1, Shared: w.shared,
		})
		w.running++
		go func() {
			err := p.does(w, node)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.running--
			if err != nil {
				w.Errorf("%s: %v", p.name, err)
			}
		}()
	}
	last := 0
	for {
		synctest.Wait()
		w.mu.Lock()
		if w.running == 0 {
			w.mu.Unlock()
			return
		}
		if len(w.waiting) == 0 {
			w.mu.Unlock()
			client.Sleep(context.Background(), time.Millisecond) // no request waits, because a caller waits for the clock
			continue
		}
		// The party that sent the last request continues, unless the path chooses another request.
		slices.SortStableFunc(w.waiting, func(a, b *heldRequest) int {
			return cmp.Or(cmp.Compare(abs(a.party-last), abs(b.party-last)), cmp.Compare(a.key, b.key))
		})
		choice := 0
		if n := len(w.options); n < len(w.path) {
			choice = min(w.path[n], len(w.waiting)-1) // concurrent requests within a party may differ between runs
		}
		w.options = append(w.options, len(w.waiting))
		h := w.waiting[choice]
		w.waiting = slices.Delete(w.waiting, choice, choice+1)
		last = h.party
		w.mu.Unlock()
		close(h.turn)
	}
}

// tailOf returns Options.TailEvents for a party.
func (w *world) tailOf(party int) int {
	if len(w.tails) == 0 {
		return 0
	}
	return w.tails[party%len(w.tails)]
}

func abs(n int) int { return max(n, -n) }

// everyOrder runs the parties in every order in which a party with a waiting request is interrupted up to
// limit times. Of the orders with exactly limit interruptions, it runs a sample; see sample.
// MESSAGEHUB_INTERLEAVE_TURNS sets another limit, without sampling.
func everyOrder(t *testing.T, limit int, prepare func(w *world), parties ...party) {
	t.Helper()
	everyOrderOn(t, embedded.Options{}, limit, prepare, parties...)
}

func everyOrderOn(t *testing.T, account embedded.Options, limit int, prepare func(w *world), parties ...party) {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("MESSAGEHUB_INTERLEAVE_TURNS")); err == nil {
		limit = n
	}
	var path []int
	orders, interrupted := 0, sample{oneOf: 17}
	switch {
	case os.Getenv("MESSAGEHUB_INTERLEAVE_TURNS") != "":
		interrupted.oneOf = 1
	case limit < 2:
		interrupted.oneOf = 3
	}
	for path != nil || orders == 0 {
		var options []int
		synctest.Test(t, func(t *testing.T) {
			w := &world{T: t, rig: newRig(t, account), actor: repositorytest.NewActor(), path: path, shared: memory.NewContent()}
			prepare(w)
			w.run(parties)
			w.checkStore()
			options = w.options
		})
		if t.Failed() {
			t.Fatalf("in the order %v", path)
		}
		orders++
		for path = nextPath(path, options, limit); countInterruptions(path) == limit && !interrupted.isSelected(); {
			path = nextPath(path, options[:len(path)], limit)
		}
	}
	t.Logf("%d orders", orders)
	require.Greater(t, orders, 2)
}

// nextPath returns the path after path, with up to limit choices other than the first request. It returns
// nil after the last path.
func nextPath(path, options []int, limit int) []int {
	path = append(slices.Clone(path), make([]int, len(options)-min(len(path), len(options)))...)
	used := countInterruptions(path)
	for i := len(options) - 1; i >= 0; i-- {
		if path[i] > 0 {
			used--
		}
		if path[i]+1 < options[i] && used < limit {
			path[i]++
			return path[:i+1]
		}
		path = path[:i]
	}
	return nil
}

// countInterruptions returns the number of choices of a path that are not the first waiting request.
func countInterruptions(path []int) (n int) {
	for _, c := range path {
		if c > 0 {
			n++
		}
	}
	return n
}

// checkStore checks the stored documents, delivers the remaining events, and checks the order of all
// events.
func (w *world) checkStore() {
	require.NoError(w, w.auditMailbox(w.actor))
	node := w.node(Options{DrawerCapacity: 2, Exclusive: true}, false)
	w.requested.checkAnswers(w, node)
	w.requireKept(node)
	drained, err := repositorytest.Drain(context.Background(), w.stores(node), w.actor, allGroups)
	require.NoError(w, err)
	require.NoError(w, w.ledger.Check(append(w.dequeued, drained...)))
	require.NoError(w, w.repairMailbox(w.actor))
}

// putObject puts an object into the folder of the open bundle.
func (w *world) putObject(node *Repository) {
	next, err := node.NextUnacknowledged(w.Context(), w.actor, allGroups)
	require.NoError(w, err)
	object := next.Run.Folder() + "/of-" + next.Open.ID.String()
	for _, store := range []repository.Content{w.content, w.shared} {
		require.NoError(w, store.Put(w.Context(), object, strings.NewReader("x")))
	}
	if w.kept == nil {
		w.kept = make(map[domain.BundleID]string)
	}
	w.kept[next.Open.ID] = object
}

// requireKept requires that the object in the folder of each open bundle still exists.
func (w *world) requireKept(node *Repository) {
	queues, err := node.Queues(context.Background(), w.actor)
	require.NoError(w, err)
	for _, q := range queues {
		if q.Open == nil || w.kept[q.Open.ID] == "" {
			continue
		}
		for _, store := range []repository.Content{w.content, w.shared} {
			r, err := store.Open(context.Background(), repository.Section{Object: w.kept[q.Open.ID]})
			require.NoError(w, err, "an open bundle has lost its folder")
			require.NoError(w, r.Close())
		}
	}
}

func (w *world) saveEvents(node *Repository, events ...domain.Event) error {
	saved, err := node.Save(context.Background(), w.actor, events)
	if err == nil {
		require.Equal(w, len(events), saved.Accepted+saved.Duplicates)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ledger.Saved(0, events...)
	}
	return err
}

// takeBundle peeks and dequeues a bundle. Another call may close the bundle between the Peek and the
// Dequeue.
func (w *world) takeBundle(node *Repository) error {
	b, err := repositorytest.Peek(context.Background(), w.stores(node), w.actor, allGroups, domain.BundleID{})
	for domain.KindOf(err) == domain.Conflict { // the group has changed: peek again, as the hub does
		b, err = repositorytest.Peek(context.Background(), w.stores(node), w.actor, allGroups, domain.BundleID{})
	}
	if err != nil {
		return err
	}
	if _, err = node.Acknowledge(context.Background(), w.actor, b.ID); err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dequeued = append(w.dequeued, b)
	}
	return err
}

// withAcknowledged saves five events and acknowledges the first ones, in bundles of one event.
func withAcknowledged(acknowledged int) func(w *world) {
	return func(w *world) {
		node := w.node(Options{DrawerCapacity: 2, TailEvents: w.tailOf(0), Random: seeded(99)}, false)
		for range 5 {
			require.NoError(w, w.saveEvents(node, repositorytest.Event(w.actor, repositorytest.WithoutBundling)))
		}
		for range acknowledged {
			b, err := repositorytest.Peek(context.Background(), w.stores(node), w.actor, allGroups, domain.BundleID{})
			require.NoError(w, err)
			w.putObject(node)
			_, err = node.Acknowledge(context.Background(), w.actor, b.ID)
			require.NoError(w, err)
			w.dequeued = append(w.dequeued, b)
		}
	}
}

// tailLimits returns the values of w.tails to test: no tails, and different limits. If turns is at most 1,
// a test runs few orders. So tailLimits also returns tails of a whole drawer, and a node without tails
// beside a node with tails.
func tailLimits(turns int) [][]int {
	all := [][]int{nil, {1, 2}, {2}, {2, 0}}
	if turns > 1 || raced {
		all = all[:2]
	}
	return all
}

// withTails sets the limits of tails for the parties and for prepare.
func withTails(limits []int, prepare func(w *world)) func(w *world) {
	return func(w *world) {
		w.tails = limits
		prepare(w)
	}
}

var (
	sweeps = party{name: "sweep", does: func(w *world, node *Repository) error {
		_, err := node.SweepRecipient(context.Background(), w.actor)
		return err
	}}
	takesOne = party{name: "peek and dequeue", does: func(w *world, node *Repository) error { return w.takeBundle(node) }}
	// replaysOne replays the bundle that was dequeued last, if it is still retained.
	replaysOne = party{name: "replay", does: func(w *world, node *Repository) error {
		group, err := domain.DefaultGroups().GroupOf(domain.TimeSeries)
		require.NoError(w, err)
		b, err := node.Replay(context.Background(), w.actor, group, repository.AdminAction{Who: "who", Why: "why"})
		switch domain.KindOf(err) {
		case domain.NotFound, domain.Conflict:
			return nil
		default:
		}
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dequeued = slices.DeleteFunc(w.dequeued, func(p repositorytest.PeekedBundle) bool { return p.ID == b.ID })
		}
		return err
	}}
	savesTwo = party{name: "save", does: func(w *world, node *Repository) error {
		return w.saveEvents(node, repositorytest.Events(2, w.actor)...)
	}}
)

func TestASweep_DisturbsNoCallInAnyOrder(t *testing.T) {
	for _, tc := range []struct {
		name         string
		turns        int
		acknowledged int
		with         party
	}{
		{"peek and dequeue, in the middle", 1, 3, takesOne},
		{"peek and dequeue of the last", 1, 4, takesOne},
		{"save behind what is still there", 1, 3, savesTwo},
		{"save where all is acknowledged", 1, 5, savesTwo},
		{"replay of a drawer that is about to go", 2, 2, replaysOne},
		{"replay of a bundle whose drawers are partly removed", 2, 3, replaysOne},
		{"replay where all is acknowledged", 2, 5, replaysOne},
		{"another sweep", 1, 4, sweeps},
		{"another sweep of all", 1, 5, sweeps},
	} {
		turns := tc.turns
		if raced {
			turns = 1
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, limits := range tailLimits(turns) {
				everyOrder(t, turns, withTails(limits, withAcknowledged(tc.acknowledged)), sweeps, tc.with)
			}
		})
	}
}

// TestASweep_DisturbsNoSaveWithALostReply loses the reply to a write of a Save, while a sweep clears the
// cabinet of the next Save of the same process.
func TestASweep_DisturbsNoSaveWithALostReply(t *testing.T) {
	elsewhere := repositorytest.WithOrigin(domain.Charges)
	turns := 2
	if raced {
		turns = 1
	}
	for write, lost := range map[string]int{"reserve": 1, "count": 3, "commit": 5} {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			for _, limits := range tailLimits(turns) {
				lost := lost
				if len(limits) > 0 {
					lost = min(lost, 2) // two small Saves, to the same cabinet, are one write each
				}
				everyOrder(t, turns, withTails(limits, withAcknowledged(5)), sweeps, party{name: "save", loses: lost, does: func(w *world, node *Repository) error {
					return errors.Join(
						w.saveEvents(node, repositorytest.Event(w.actor, elsewhere)),
						w.saveEvents(node, repositorytest.Event(w.actor, elsewhere)),
						w.saveEvents(node, repositorytest.Event(w.actor)),
					)
				}})
			}
		})
	}
}
