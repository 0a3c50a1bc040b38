package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
)

// callUntilDone calls act with a node until act succeeds or fails in a way that does not allow a repetition, or the
// simulation ends.
func (sim *watchSimulation) callUntilDone(p *baseClient, what string, act func(n *watchNode) (isDone bool, err error)) error {
	for {
		if _, ok := p.awaitTurn(what); !ok {
			return nil
		}
		if n := sim.anyNode(p.rng); n != nil {
			if isDone, err := act(n.watches); isDone || err != nil {
				return err
			}
		}
		if !p.pause(time.Second) {
			return nil
		}
	}
}

// unexplainedWatch returns an error if no injected fault explains err.
func unexplainedWatch(what string, err error) error {
	switch domain.KindOf(err) {
	case domain.Invalid, domain.Damaged, domain.NewerFormat:
		return fmt.Errorf("%s: %w", what, err)
	default:
		return nil
	}
}

// A documentWriter changes a document of clients through any node.
type documentWriter struct {
	baseClient
	sim          *watchSimulation
	resource     domain.Resource
	version      string // version that this writer stored last
	versionCount int    // number of versions so far
}

func (a *documentWriter) changeMany() error {
	for range 4 + a.rng.IntN(12) {
		if !a.pause(time.Duration(a.rng.IntN(8000)) * time.Millisecond) {
			return nil
		}
		if err := a.changeDocument(); err != nil {
			return err
		}
	}
	return nil
}

// changeDocument stores a version, sometimes with a condition, or deletes the document. It does not repeat a failed
// request.
func (a *documentWriter) changeDocument() error {
	var when watch.Condition
	if a.version != "" && a.rng.IntN(3) == 0 {
		when.Versions = []string{a.version}
	}
	isDeletion := a.rng.IntN(4) == 0
	what := "puts " + a.resource.Name()
	if isDeletion {
		what = "deletes " + a.resource.Name()
	}
	return a.sim.callUntilDone(&a.baseClient, what, func(n *watchNode) (bool, error) {
		if isDeletion {
			return true, a.unexplainedError(n.service.DeleteDocument(a.sim.ctx, a.resource, when))
		}
		a.versionCount++
		stored, _, err := n.service.PutDocument(a.sim.ctx, a.resource, fmt.Appendf(nil, `{"by":%q,"n":%d,"fill":"%0*d"}`, a.who, a.versionCount, a.rng.IntN(300), 0), when)
		if err == nil {
			a.version = stored.Version
			err = a.checkReplaced(stored.Version, when)
		}
		return true, a.unexplainedError(err)
	})
}

// checkReplaced returns an error unless version was stored and replaced a version that the condition allows.
func (a *documentWriter) checkReplaced(version string, when watch.Condition) error {
	before, isStored := a.sim.observer.Replaced(a.resource.Name(), version)
	if !isStored || when.Versions != nil && !slices.Contains(when.Versions, before) {
		return domain.Errorf(domain.Invalid, "version %s replaced %[3]q, want one of %[4]q; it is stored: %[2]t", version, isStored, before, when.Versions)
	}
	return nil
}

// unexplainedError returns an error if no injected fault explains err.
func (a *documentWriter) unexplainedError(err error) error {
	if errors.Is(err, watch.ErrChanged) {
		a.version = ""
	}
	return unexplainedWatch(a.who+" cannot change "+a.resource.Name(), err)
}

// A watchOwner manages watches through any node.
type watchOwner struct {
	baseClient
	sim   *watchSimulation
	actor domain.ActorID
}

func newWatchOwner(sim *watchSimulation, i int, use uint64) (*watchOwner, error) {
	who := fmt.Sprint("owner-", i)
	actor, err := domain.ParseActorID(who)
	return &watchOwner{baseClient: sim.newClient(who, use), sim: sim, actor: actor}, err
}

func (o *watchOwner) manageMany() error {
	for range 3 + o.rng.IntN(8) {
		if !o.pause(time.Duration(o.rng.IntN(10_000)) * time.Millisecond) {
			return nil
		}
		var err error
		switch own := o.ownWatches(); {
		case len(own) == 0 || o.rng.IntN(2) == 0:
			err = o.createWatch()
		case o.rng.IntN(3) == 0:
			err = o.replaceCallback(own[o.rng.IntN(len(own))])
		case o.rng.IntN(2) == 0:
			err = o.deleteWatch(own[o.rng.IntN(len(own))])
		default:
			err = o.readWatch(own[o.rng.IntN(len(own))])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ownWatches returns the watches that the owner created and did not delete.
func (o *watchOwner) ownWatches() []*observedWatch {
	o.sim.pmu.Lock()
	defer o.sim.pmu.Unlock()
	var own []*observedWatch
	for _, one := range o.sim.watches {
		if one.owner == o.actor && one.isCreated && !one.isDeleted {
			own = append(own, one)
		}
	}
	slices.SortFunc(own, func(a, b *observedWatch) int { return slices.Compare(a.id[:], b.id[:]) })
	return own
}

// createWatch creates a watch of a document or a bundle. If the request is repeated, it creates a second watch.
func (o *watchOwner) createWatch() error {
	resource := o.sim.documents[o.rng.IntN(len(o.sim.documents))]
	owner := o.actor
	if bundles := o.sim.openedBundles(); len(bundles) > 0 && o.rng.IntN(2) == 0 {
		resource = bundles[o.rng.IntN(len(bundles))]
		owner = resource.Actor()
	}
	return o.createOn(resource, owner)
}

// createOn creates a watch of a resource for an actor.
func (o *watchOwner) createOn(resource domain.Resource, owner domain.ActorID) error {
	return o.sim.callUntilDone(&o.baseClient, "watches "+resource.String(), func(n *watchNode) (bool, error) {
		d := o.sim.newDraft(resource)
		if d == nil {
			return true, nil
		}
		_, err := n.service.Create(o.sim.ctx, owner, watch.Draft{
			Resource: o.sim.base.URI(resource), CallbackURL: d.callbackURL("hook"), MayBeAbsent: resource.Kind() == domain.KeptResource && o.rng.IntN(2) == 0,
		})
		if err != nil {
			return domain.KindOf(err) == domain.NotFound, unexplainedWatch(o.who+" cannot watch "+resource.String(), err)
		}
		return true, o.noteCreated(d)
	})
}

// noteCreated records that a watch was created. It returns an error if the watch begins after the last change of the
// resource.
func (o *watchOwner) noteCreated(d *watchDraft) error {
	n := o.sim.countChanges(d.resource)
	o.sim.pmu.Lock()
	defer o.sim.pmu.Unlock()
	d.watch.isCreated = true
	if n > d.before {
		o.sim.MarkReached("a resource was changed while a watch of it was created")
	}
	if d.watch.after > n {
		return fmt.Errorf("P18: %s begins after change %d, but %s has only %d changes", d.name, d.watch.after, d.resource, n)
	}
	return nil
}

// replaceCallback replaces the callback URL of a watch.
func (o *watchOwner) replaceCallback(one *observedWatch) error {
	d := &watchDraft{name: one.name}
	callback := d.callbackURL(fmt.Sprint("hook/", o.rng.IntN(1000)))
	o.sim.pmu.Lock()
	one.callbacks = append(one.callbacks, callback)
	o.sim.pmu.Unlock()
	return o.sim.callUntilDone(&o.baseClient, "replaces "+one.name, func(n *watchNode) (bool, error) {
		err := n.service.Replace(o.sim.ctx, one.owner, one.id, watch.Draft{Resource: o.sim.base.URI(one.resource), CallbackURL: callback})
		if domain.KindOf(err) == domain.NotFound {
			return true, fmt.Errorf("%s cannot replace %s, which was created: %w", o.who, one.name, err)
		}
		return err == nil, unexplainedWatch(o.who+" cannot replace "+one.name, err)
	})
}

// deleteWatch deletes a watch.
func (o *watchOwner) deleteWatch(one *observedWatch) error {
	o.sim.pmu.Lock()
	one.isDeleted = true
	o.sim.pmu.Unlock()
	if outstanding, _ := o.sim.observer.Outstanding(one.cursor.String()); len(outstanding) > 0 {
		o.sim.MarkReached("a watch was deleted whose notifications were outstanding")
	}
	return o.sim.callUntilDone(&o.baseClient, "deletes "+one.name, func(n *watchNode) (bool, error) {
		err := n.service.Delete(o.sim.ctx, one.owner, one.id)
		return err == nil || domain.KindOf(err) == domain.NotFound, unexplainedWatch(o.who+" cannot delete "+one.name, err)
	})
}

// readWatch reads a watch, and compares its counters with the committed changes.
func (o *watchOwner) readWatch(one *observedWatch) error {
	return o.sim.callUntilDone(&o.baseClient, "reads "+one.name, func(n *watchNode) (bool, error) {
		found, err := n.service.Get(o.sim.ctx, one.owner, one.id)
		if domain.KindOf(err) == domain.NotFound {
			return true, fmt.Errorf("%s cannot read %s, which was created: %w", o.who, one.name, err)
		}
		if err != nil {
			return false, unexplainedWatch(o.who+" cannot read "+one.name, err)
		}
		c := found.Counters
		if total := o.sim.countChanges(one.resource) - one.after; c.Triggered < c.Delivered+c.Errored+c.Cancelled || c.Triggered > total {
			return true, fmt.Errorf("W-13: %s counts %+v, but %d changes were committed", one.name, c, total)
		}
		return true, nil
	})
}

// readWithoutCursor reads a watch that has no cursor, because its creation was interrupted by a crash. The read creates
// the cursor.
func (o *watchOwner) readWithoutCursor() error {
	cursor := o.sim.observer.WatchWithoutCursor()
	if cursor == "" {
		return nil
	}
	o.sim.pmu.Lock()
	one := o.sim.watches[cursor]
	o.sim.pmu.Unlock()
	n := o.sim.anyNode(o.rng)
	if n == nil {
		return nil
	}
	o.sim.MarkReached("a watch was stored without its cursor")
	_, err := n.watches.service.Get(o.sim.ctx, one.owner, one.id)
	return unexplainedWatch("a watch without a cursor cannot be read", err)
}

// verifyCounters compares the counters of all watches with the committed changes. No delivery may be outstanding.
func (o *watchOwner) verifyCounters() error {
	o.sim.pmu.Lock()
	all := make([]*observedWatch, 0, len(o.sim.watches))
	for _, one := range o.sim.watches {
		if !one.isDeleted {
			all = append(all, one)
		}
	}
	o.sim.pmu.Unlock()
	slices.SortFunc(all, func(a, b *observedWatch) int { return slices.Compare(a.id[:], b.id[:]) })
	for _, one := range all {
		err := o.sim.callUntilDone(&o.baseClient, "reads "+one.name, func(n *watchNode) (bool, error) {
			found, err := n.service.Get(o.sim.ctx, one.owner, one.id)
			if err != nil {
				return false, unexplainedWatch(o.who+" cannot read "+one.name, err)
			}
			c, total := found.Counters, o.sim.countChanges(one.resource)-one.after
			if c.Triggered != total || c.Delivered+c.Errored != total || c.Cancelled > 0 {
				return true, fmt.Errorf("W-13: %s counts %+v, but %d changes were committed", one.name, c, total)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
