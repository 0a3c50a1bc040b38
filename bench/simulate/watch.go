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
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A watchSimulation is a push simulation of watches: owners create, change and delete watches on bundles and on
// clients' documents, while other clients change the bundles and documents through two nodes. One seed in three has a
// watch simulation.
type watchSimulation struct {
	*pushSimulation
	base      domain.ResourceBase
	bundles   *invariants.Observer
	documents []domain.Resource
	retention time.Duration // of bundles

	// The fields below are guarded by pushSimulation.pmu.
	opened  []domain.Resource         // bundles that may be watched
	drafts  map[string]*watchDraft    // drafts by the name of the receiver
	watches map[string]*observedWatch // watches by cursor
}

// A watchDraft is a watch that an owner is about to create.
type watchDraft struct {
	name     string // name of the receiver
	resource domain.Resource
	before   int64 // number of changes of the resource when the request began
	watch    *observedWatch
}

// An observedWatch is a watch that a node has begun to store.
type observedWatch struct {
	*pushReceiver // here isDeleted is true after the first request to delete the watch
	id            domain.WatchID
	owner         domain.ActorID
	resource      domain.Resource
	after         int64
	callbacks     []string // possible callbacks
}

const (
	// watchFaults is the offset of fault numbers in a watch simulation.
	watchFaults = 4_000_000
	// watchPurposes is added to the purpose of each random source of a watch simulation.
	watchPurposes = 30_000
	// maxReceivers is the maximum number of receivers in a simulation. With more, receivers would share addresses and
	// random sources.
	maxReceivers = 50
)

// hasWatches reports whether a seed has a watch simulation.
func hasWatches(seed uint64) bool { return random.New(seed, watchPurposes+500).IntN(3) == 0 }

func newWatchSimulation(o *Options) (*watchSimulation, error) {
	p, err := newPushSimulation(o, watchPurposes, watchFaults)
	if err != nil {
		return nil, err
	}
	sim := &watchSimulation{pushSimulation: p, bundles: p.work.checkers[containers.Invariants].(*invariants.Observer), drafts: make(map[string]*watchDraft), watches: make(map[string]*observedWatch)}
	p.watches, p.workload, p.describeUnfinished = sim, sim.changeWhileOwnersAct, sim.describeUnpublished
	p.Profile.LastStep = 300 + p.rng.IntN(1000)
	sim.retention = []time.Duration{20 * time.Second, time.Minute, 3 * time.Minute}[p.rng.IntN(3)]
	sim.base, err = domain.ParseResourceBase("https://hub.example.org")
	for i := range 1 + p.rng.IntN(2) {
		r, failure := domain.Kept(fmt.Sprint("document-", i))
		sim.documents, err = append(sim.documents, r), errors.Join(err, failure)
	}
	return sim, errors.Join(err, sim.provisionBundles())
}

// provisionBundles creates the containers of bundles. No faults are injected into its requests.
func (sim *watchSimulation) provisionBundles() error {
	db, err := client.Connect(client.Connection{Endpoint: withHTTPS(sim.env.engine.Endpoint()), Key: sim.env.engine.Key(), Transport: sim.env.engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Provision(sim.ctx, cosmos.Containers())
}

// countChanges returns the number of changes of a resource that were committed while it was watched.
func (sim *watchSimulation) countChanges(r domain.Resource) int64 {
	if r.Kind() == domain.BundleResource {
		return sim.bundles.Changes(r.Actor().String(), r.Name())
	}
	return sim.observer.Changes(r.Name())
}

// newDraft returns a draft of a watch, or nil if maxReceivers is reached.
func (sim *watchSimulation) newDraft(r domain.Resource) *watchDraft {
	before := sim.countChanges(r)
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	if len(sim.drafts) == maxReceivers {
		return nil
	}
	d := &watchDraft{name: fmt.Sprint("watch-", len(sim.drafts)), resource: r, before: before}
	sim.drafts[d.name] = d
	return d
}

// callbackURL returns the URL with the given path at the receiver of the draft.
func (d *watchDraft) callbackURL(path string) string { return "http://" + d.name + ".example/" + path }

// addWatch creates the receiver of a watch before the watch is stored.
func (sim *watchSimulation) addWatch(stored *repository.Watch) {
	name, _, _ := strings.Cut(strings.TrimPrefix(stored.CallbackURL, "http://"), ".")
	sim.pmu.Lock()
	d := sim.drafts[name]
	number := len(sim.watches)
	sim.pmu.Unlock()
	if stored.After < d.before {
		sim.Fail(fmt.Errorf("P18: %s begins after change %d, but %s had %d changes before the request", name, stored.After, d.resource, d.before))
	}
	o := &observedWatch{id: stored.ID, owner: stored.Owner, resource: stored.Resource, after: stored.After, callbacks: []string{stored.CallbackURL}}
	cursor := stored.ID.Cursor(stored.Owner)
	o.pushReceiver = sim.newReceiver(cursor, stored.Resource.Stream(), name, number)
	o.filters, o.redirects = false, sim.rng.IntN(2) == 0
	o.check = func(_ *http.Request, body []byte, e push.Entry) error { return sim.checkNotification(o, body, e) }
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	d.watch, sim.watches[cursor.String()] = o, o
}

func (sim *watchSimulation) findWatch(cursor domain.CursorID) *observedWatch {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	return sim.watches[cursor.String()]
}

// checkNotification compares the notification in a call with the committed change.
func (sim *watchSimulation) checkNotification(o *observedWatch, body []byte, e push.Entry) error {
	var n map[string]any
	if err := json.Unmarshal(body, &n); err != nil {
		return err
	}
	callback, _ := n["callback"].(string)
	sim.pmu.Lock()
	isKnown := slices.Contains(o.callbacks, callback)
	sim.pmu.Unlock()
	attempts, _ := n["delivery_attempts"].(float64)
	seconds, isTime := n["timestamp"].(float64)
	event := string(domain.ResourceUpdated)
	switch r := o.resource; {
	case r.Kind() == domain.KeptResource:
		event = sim.observer.Event(r.Name(), e.Number)
	case sim.bundles.Removal(r.Actor().String(), r.Name()) == e.Number+1:
		event = string(domain.ResourceDeleted)
	}
	switch {
	case e.Number < o.after:
		return fmt.Errorf("P18: it is notified of change %d, but begins after change %d", e.Number+1, o.after)
	case len(n) != 5 || n["resource"] != sim.base.URI(o.resource) || n["event"] != event || !isKnown || !isTime || seconds != float64(int64(seconds)) || int(attempts) >= sim.attempts:
		return fmt.Errorf("W-16: the notification of change %d, which is %q, is %s", e.Number+1, event, body)
	}
	return nil
}

// changeWhileOwnersAct runs all clients until every delivery has ended.
func (sim *watchSimulation) changeWhileOwnersAct() error {
	var acts []func() error
	use := func(kind, i int) uint64 { return uint64(watchPurposes + kind + i) } //nolint:gosec // positive
	for i, r := range sim.documents {
		for k := range 1 + sim.rng.IntN(2) { // two writers may act at the same time
			writer := &documentWriter{baseClient: sim.newClient(fmt.Sprintf("writer-%d-%d", i, k), use(1000+100*k, i)), sim: sim, resource: r}
			acts = append(acts, writer.changeMany)
		}
	}
	var sweepers []*bundleSweeper
	for i := range sim.rng.IntN(3) {
		actor, err := newBundleActor(sim, i, use(1300, i))
		if err != nil {
			return err
		}
		sweepers = append(sweepers, actor.sweeper)
		acts = append(acts, actor.takeMany)
	}
	for i := range 1 + sim.rng.IntN(3) {
		owner, err := newWatchOwner(sim, i, use(1500, i))
		if err != nil {
			return err
		}
		acts = append(acts, owner.manageMany)
	}
	if err := sim.runTogether(acts...); err != nil || sim.ctx.Err() != nil {
		return err
	}
	for _, s := range sweepers {
		if err := s.sweepLast(); err != nil || sim.ctx.Err() != nil {
			return err
		}
	}
	last, err := newWatchOwner(sim, 9, watchPurposes+510)
	if err != nil {
		return err
	}
	if err := sim.awaitDeliveries(&last.baseClient, last.readWithoutCursor); err != nil || sim.ctx.Err() != nil {
		return err
	}
	sim.forgetUnstored()
	return errors.Join(sim.verifyReceivers(), sim.verifyChanges(), last.verifyCounters())
}

// describeUnpublished describes an unpublished change, or a watch without its correct cursor. It returns "" if neither
// exists.
func (sim *watchSimulation) describeUnpublished() string {
	if change := sim.observer.Unpublished(); change != "" {
		return change + " was not published"
	}
	if len(sim.work.outbox) > 0 {
		return fmt.Sprintf("the outbox has %d notices", len(sim.work.outbox))
	}
	if watch := sim.observer.WatchWithoutCursor(); watch != "" {
		return watch + " has no cursor"
	}
	for _, id := range sim.observer.Cursors() {
		if !sim.observer.HasWatch(id) && !sim.observer.IsRetired(id) {
			return "watch " + id + " was deleted, and its cursor is not retired"
		}
	}
	return ""
}

// forgetUnstored marks watches that were never stored as deleted.
func (sim *watchSimulation) forgetUnstored() {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	for cursor, o := range sim.watches {
		o.isDeleted = o.isDeleted || !sim.observer.HasWatch(cursor)
	}
}

// verifyChanges compares the streams of resources with the committed changes.
func (sim *watchSimulation) verifyChanges() error {
	for _, r := range slices.Concat(sim.documents, sim.openedBundles()) {
		if published, n := sim.countPublished(r.Stream()), sim.countChanges(r); published != n {
			return fmt.Errorf("P14: %s has %d changes, but %d were published", r, n, published)
		}
	}
	return nil
}

func (sim *watchSimulation) openedBundles() []domain.Resource {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	return slices.Clone(sim.opened)
}

// runWatches runs the watch simulation of a seed in a synctest bubble.
func runWatches(o *Options) (r Result) {
	sim, err := newWatchSimulation(o)
	if err != nil {
		return Result{Err: err}
	}
	if err = sim.runToEnd(); err != nil {
		err = fmt.Errorf("watches: %w", err)
	}
	return sim.newResult(err)
}
