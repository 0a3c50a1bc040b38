package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/invariants"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A watchWorld is a push world of watches: owners create, change and delete watches on bundles and on
// documents of clients, while these change on two nodes. Some seeds have one besides their other worlds.
type watchWorld struct {
	*pushWorld
	base      domain.ResourceBase
	bundles   *invariants.Observer
	documents []domain.Resource
	retention time.Duration // of bundles

	// Guarded by pushWorld.pmu.
	opened  []domain.Resource         // bundles that are watched, or can be
	drafts  map[string]*watchDraft    // by the name of the receiver
	watches map[string]*observedWatch // by cursor
}

// A watchDraft is a watch that an owner wants.
type watchDraft struct {
	name     string // of its receiver
	resource domain.Resource
	before   int64 // changes of the resource when the request began
	watch    *observedWatch
}

// An observedWatch is a watch that a node has begun to store, and what is known of it.
type observedWatch struct {
	*pushReceiver // isDeleted since a deletion began
	id            domain.WatchID
	owner         domain.ActorID
	resource      domain.Resource
	after         int64
	callbacks     []string // that it may have
}

const (
	// watchFaults is the number before the first fault of a world of watches.
	watchFaults = 4_000_000
	// watchUses is added to the use of each dice.
	watchUses = 30_000
	// maxReceivers is the limit for the receivers of a world, so that each has an address and dice of
	// its own.
	maxReceivers = 50
)

// hasWatches reports whether a seed has a world of watches.
func hasWatches(seed uint64) bool { return newDice(seed, watchUses+500).n(3) == 0 }

func newWatchWorld(o *Options) (*watchWorld, error) {
	p, err := newPushWorld(o, watchUses, watchFaults)
	if err != nil {
		return nil, err
	}
	w := &watchWorld{pushWorld: p, bundles: p.judges[containers.Invariants].(*invariants.Observer), drafts: make(map[string]*watchDraft), watches: make(map[string]*observedWatch)}
	p.watches, p.course, p.unfinished = w, w.changeWhileOwnersAct, w.unpublished
	p.weather.lasts = 300 + p.d.n(1000)
	w.retention = []time.Duration{20 * time.Second, time.Minute, 3 * time.Minute}[p.d.n(3)]
	w.base, err = domain.ParseResourceBase("https://hub.example.org")
	for i := range 1 + p.d.n(2) {
		r, failure := domain.Kept(fmt.Sprint("document-", i))
		w.documents, err = append(w.documents, r), errors.Join(err, failure)
	}
	return w, errors.Join(err, w.provisionBundles())
}

// provisionBundles creates the containers of bundles, before anything goes wrong.
func (w *watchWorld) provisionBundles() error {
	db, err := client.Connect(client.Connection{Endpoint: secure(w.engine.Endpoint()), Key: w.engine.Key(), Transport: w.engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Provision(w.ctx, cosmos.Containers())
}

// changes returns how many changes of a resource were committed while it was watched.
func (w *watchWorld) changes(r domain.Resource) int64 {
	if r.Kind() == domain.BundleResource {
		return w.bundles.Changes(r.Actor().String(), r.Name())
	}
	return w.observer.Changes(r.Name())
}

// newDraft returns a draft of a watch, nil if the world has as many as it may have.
func (w *watchWorld) newDraft(r domain.Resource) *watchDraft {
	before := w.changes(r)
	w.pmu.Lock()
	defer w.pmu.Unlock()
	if len(w.drafts) == maxReceivers {
		return nil
	}
	d := &watchDraft{name: fmt.Sprint("watch-", len(w.drafts)), resource: r, before: before}
	w.drafts[d.name] = d
	return d
}

// callbackURL returns a URL of the receiver of a draft.
func (d *watchDraft) callbackURL(path string) string { return "http://" + d.name + ".example/" + path }

// addWatch gives the watch of a draft a receiver. It is called before the watch is stored.
func (w *watchWorld) addWatch(stored *repository.Watch) {
	name, _, _ := strings.Cut(strings.TrimPrefix(stored.CallbackURL, "http://"), ".")
	w.pmu.Lock()
	d := w.drafts[name]
	number := len(w.watches)
	w.pmu.Unlock()
	if stored.After < d.before {
		w.fail(fmt.Errorf("P18: %s is to begin behind change %d, and %s had %d changes before it was asked for", name, stored.After, d.resource, d.before))
	}
	o := &observedWatch{id: stored.ID, owner: stored.Owner, resource: stored.Resource, after: stored.After, callbacks: []string{stored.CallbackURL}}
	cursor := stored.ID.Cursor(stored.Owner)
	o.pushReceiver = w.newReceiverOf(cursor, stored.Resource.Stream(), name, number)
	o.filters, o.redirects = false, w.d.n(2) == 0
	o.check = func(_ *http.Request, body []byte, e push.Entry) error { return w.checkNotification(o, body, e) }
	w.pmu.Lock()
	defer w.pmu.Unlock()
	d.watch, w.watches[cursor.String()] = o, o
}

func (w *watchWorld) find(cursor domain.CursorID) *observedWatch {
	w.pmu.Lock()
	defer w.pmu.Unlock()
	return w.watches[cursor.String()]
}

// checkNotification compares a call with the change that has its number.
func (w *watchWorld) checkNotification(o *observedWatch, body []byte, e push.Entry) error {
	var n map[string]any
	if err := json.Unmarshal(body, &n); err != nil {
		return err
	}
	callback, _ := n["callback"].(string)
	w.pmu.Lock()
	isKnown := slices.Contains(o.callbacks, callback)
	w.pmu.Unlock()
	attempts, _ := n["delivery_attempts"].(float64)
	seconds, isTime := n["timestamp"].(float64)
	event := string(domain.ResourceUpdated)
	switch r := o.resource; {
	case r.Kind() == domain.KeptResource:
		event = w.observer.Event(r.Name(), e.Number)
	case w.bundles.Removal(r.Actor().String(), r.Name()) == e.Number+1:
		event = string(domain.ResourceDeleted)
	}
	switch {
	case e.Number < o.after:
		return fmt.Errorf("P18: it is notified of change %d, and begins behind change %d", e.Number+1, o.after)
	case len(n) != 5 || n["resource"] != w.base.URI(o.resource) || n["event"] != event || !isKnown || !isTime || seconds != float64(int64(seconds)) || int(attempts) >= w.attempts:
		return fmt.Errorf("W-16: the notification of change %d, which is %q, is %s", e.Number+1, event, body)
	}
	return nil
}

// changeWhileOwnersAct lets all parties act, until nothing is left to deliver.
func (w *watchWorld) changeWhileOwnersAct() error {
	var acts []func() error
	use := func(kind, i int) uint64 { return uint64(watchUses + kind + i) } //nolint:gosec // positive
	for i, r := range w.documents {
		for k := range 1 + w.d.n(2) { // which may meet
			writer := &documentWriter{party: w.newParty(fmt.Sprintf("writer-%d-%d", i, k), use(1000+100*k, i)), w: w, r: r}
			acts = append(acts, writer.changeMany)
		}
	}
	var sweepers []*bundleSweeper
	for i := range w.d.n(3) {
		actor, err := newBundleActor(w, i, use(1300, i))
		if err != nil {
			return err
		}
		sweepers = append(sweepers, actor.sweeper)
		acts = append(acts, actor.takeMany)
	}
	for i := range 1 + w.d.n(3) {
		owner, err := newWatchOwner(w, i, use(1500, i))
		if err != nil {
			return err
		}
		acts = append(acts, owner.manageMany)
	}
	if err := w.runTogether(acts...); err != nil || w.ctx.Err() != nil {
		return err
	}
	for _, s := range sweepers {
		if err := s.sweepLast(); err != nil || w.ctx.Err() != nil {
			return err
		}
	}
	last, err := newWatchOwner(w, 9, watchUses+510)
	if err != nil {
		return err
	}
	if err := w.ends(&last.party, last.readWithoutCursor); err != nil || w.ctx.Err() != nil {
		return err
	}
	w.forgetUnstored()
	return errors.Join(w.judge(), w.judgeChanges(), last.judgeCounters())
}

// unpublished describes a change that no stream has, or a watch whose cursor is not as it has to be in
// the end, or "".
func (w *watchWorld) unpublished() string {
	if change := w.observer.Unpublished(); change != "" {
		return change + " was not published"
	}
	if len(w.outbox) > 0 {
		return fmt.Sprintf("the outbox has %d notices", len(w.outbox))
	}
	if watch := w.observer.WatchWithoutCursor(); watch != "" {
		return watch + " has no cursor"
	}
	for _, id := range w.observer.Cursors() {
		if !w.observer.HasWatch(id) && !w.observer.IsRetired(id) {
			return "watch " + id + " was deleted, and its cursor is not retired"
		}
	}
	return ""
}

// forgetUnstored takes the watches for deleted that were never stored.
func (w *watchWorld) forgetUnstored() {
	w.pmu.Lock()
	defer w.pmu.Unlock()
	for cursor, o := range w.watches {
		o.isDeleted = o.isDeleted || !w.observer.HasWatch(cursor)
	}
}

// judgeChanges compares the streams of resources with the changes that were committed.
func (w *watchWorld) judgeChanges() error {
	for _, r := range slices.Concat(w.documents, w.openedBundles()) {
		if published, n := w.published(r.Stream()), w.changes(r); published != n {
			return fmt.Errorf("P14: %s has %d changes, and %d were published", r, n, published)
		}
	}
	return nil
}

func (w *watchWorld) openedBundles() []domain.Resource {
	w.pmu.Lock()
	defer w.pmu.Unlock()
	return slices.Clone(w.opened)
}

// simulateWatches lets the world of watches of a seed run, in a bubble.
func simulateWatches(o *Options) (r Result) {
	w, err := newWatchWorld(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = w.simulate(); err != nil {
		err = fmt.Errorf("watches: %w", err)
	}
	return w.result(err)
}
