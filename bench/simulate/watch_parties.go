package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
)

// untilDone calls act with a node until it succeeds, fails and may not be repeated, or the world ends.
func (w *watchWorld) untilDone(p *party, what string, act func(n *watchNode) (isDone bool, err error)) error {
	for {
		if _, ok := p.turn(what); !ok {
			return nil
		}
		if n := w.anyNode(p.d); n != nil {
			if isDone, err := act(n.watches); isDone || err != nil {
				return err
			}
		}
		if !p.pause(time.Second) {
			return nil
		}
	}
}

// unexplainedWatch returns an error that no fault of the world explains.
func unexplainedWatch(what string, err error) error {
	switch domain.KindOf(err) {
	case domain.Invalid, domain.Damaged, domain.NewerFormat:
		return fmt.Errorf("%s: %w", what, err)
	default:
		return nil
	}
}

// A documentWriter changes a document of clients by any node.
type documentWriter struct {
	party
	w       *watchWorld
	r       domain.Resource
	version string // of the document as the writer has stored it last
	n       int    // versions so far
}

func (a *documentWriter) changeMany() error {
	for range 4 + a.d.n(12) {
		if !a.pause(time.Duration(a.d.n(8000)) * time.Millisecond) {
			return nil
		}
		if err := a.change(); err != nil {
			return err
		}
	}
	return nil
}

// change stores a version, perhaps only in place of one, or deletes the document. What fails is not
// repeated.
func (a *documentWriter) change() error {
	var when watch.Condition
	if a.version != "" && a.d.n(3) == 0 {
		when.Versions = []string{a.version}
	}
	isDeletion := a.d.n(4) == 0
	what := "puts " + a.r.Name()
	if isDeletion {
		what = "deletes " + a.r.Name()
	}
	return a.w.untilDone(&a.party, what, func(n *watchNode) (bool, error) {
		if isDeletion {
			return true, a.unexplained(n.service.DeleteDocument(a.w.ctx, a.r, when))
		}
		a.n++
		stored, _, err := n.service.PutDocument(a.w.ctx, a.r, fmt.Appendf(nil, `{"by":%q,"n":%d,"fill":"%0*d"}`, a.who, a.n, a.d.n(300), 0), when)
		if err == nil {
			a.version = stored.Version
			err = a.compare(stored.Version, when)
		}
		return true, a.unexplained(err)
	})
}

// compare returns an error unless a version was stored in place of one that it may replace.
func (a *documentWriter) compare(version string, when watch.Condition) error {
	before, isStored := a.w.observer.Replaced(a.r.Name(), version)
	if !isStored || when.Versions != nil && !slices.Contains(when.Versions, before) {
		return domain.Errorf(domain.Invalid, "version %s is stored: %t, in place of %q, want %q", version, isStored, before, when.Versions)
	}
	return nil
}

// unexplained returns an error that no fault of the world explains.
func (a *documentWriter) unexplained(err error) error {
	if errors.Is(err, watch.ErrChanged) {
		a.version = ""
	}
	return unexplainedWatch(a.who+" cannot change "+a.r.Name(), err)
}

// A watchOwner manages watches by any node.
type watchOwner struct {
	party
	w     *watchWorld
	actor domain.ActorID
}

func newWatchOwner(w *watchWorld, i int, use uint64) (*watchOwner, error) {
	who := fmt.Sprint("owner-", i)
	actor, err := domain.ParseActorID(who)
	return &watchOwner{party: w.newParty(who, use), w: w, actor: actor}, err
}

func (o *watchOwner) manageMany() error {
	for range 3 + o.d.n(8) {
		if !o.pause(time.Duration(o.d.n(10_000)) * time.Millisecond) {
			return nil
		}
		var err error
		switch own := o.own(); {
		case len(own) == 0 || o.d.n(2) == 0:
			err = o.create()
		case o.d.n(3) == 0:
			err = o.replace(own[o.d.n(len(own))])
		case o.d.n(2) == 0:
			err = o.delete(own[o.d.n(len(own))])
		default:
			err = o.read(own[o.d.n(len(own))])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// own returns the watches of the owner of which it knows, and that it has not deleted.
func (o *watchOwner) own() []*observedWatch {
	o.w.pmu.Lock()
	defer o.w.pmu.Unlock()
	var own []*observedWatch
	for _, one := range o.w.watches {
		if one.owner == o.actor && one.isCreated && !one.isDeleted {
			own = append(own, one)
		}
	}
	slices.SortFunc(own, func(a, b *observedWatch) int { return slices.Compare(a.id[:], b.id[:]) })
	return own
}

// create watches a document, or a bundle. A repeated request is another watch.
func (o *watchOwner) create() error {
	resource := o.w.documents[o.d.n(len(o.w.documents))]
	owner := o.actor
	if bundles := o.w.openedBundles(); len(bundles) > 0 && o.d.n(2) == 0 {
		resource = bundles[o.d.n(len(bundles))]
		owner = resource.Actor()
	}
	return o.createOn(resource, owner)
}

// createOn watches a resource in the name of an actor.
func (o *watchOwner) createOn(resource domain.Resource, owner domain.ActorID) error {
	return o.w.untilDone(&o.party, "watches "+resource.String(), func(n *watchNode) (bool, error) {
		d := o.w.newDraft(resource)
		if d == nil {
			return true, nil
		}
		_, err := n.service.Create(o.w.ctx, owner, watch.Draft{
			Resource: o.w.base.URI(resource), CallbackURL: d.callbackURL("hook"), MayBeAbsent: resource.Kind() == domain.KeptResource && o.d.n(2) == 0,
		})
		if err != nil {
			return domain.KindOf(err) == domain.NotFound, unexplainedWatch(o.who+" cannot watch "+resource.String(), err)
		}
		return true, o.created(d)
	})
}

// created compares a watch with the changes that its resource has when its owner is answered.
func (o *watchOwner) created(d *watchDraft) error {
	n := o.w.changes(d.resource)
	o.w.pmu.Lock()
	defer o.w.pmu.Unlock()
	d.watch.isCreated = true
	if n > d.before {
		o.w.reached("a resource was changed while a watch of it was created")
	}
	if d.watch.after > n {
		return fmt.Errorf("P18: %s begins behind change %d, and %s has %d changes", d.name, d.watch.after, d.resource, n)
	}
	return nil
}

// replace gives a watch another callback.
func (o *watchOwner) replace(one *observedWatch) error {
	d := &watchDraft{name: one.name}
	callback := d.callbackURL(fmt.Sprint("hook/", o.d.n(1000)))
	o.w.pmu.Lock()
	one.callbacks = append(one.callbacks, callback)
	o.w.pmu.Unlock()
	return o.w.untilDone(&o.party, "replaces "+one.name, func(n *watchNode) (bool, error) {
		err := n.service.Replace(o.w.ctx, one.owner, one.id, watch.Draft{Resource: o.w.base.URI(one.resource), CallbackURL: callback})
		if domain.KindOf(err) == domain.NotFound {
			return true, fmt.Errorf("%s cannot replace %s, which was created: %w", o.who, one.name, err)
		}
		return err == nil, unexplainedWatch(o.who+" cannot replace "+one.name, err)
	})
}

// delete deletes a watch.
func (o *watchOwner) delete(one *observedWatch) error {
	o.w.pmu.Lock()
	one.isDeleted = true
	o.w.pmu.Unlock()
	if outstanding, _ := o.w.observer.Outstanding(one.cursor.String()); len(outstanding) > 0 {
		o.w.reached("a watch was deleted whose notifications were outstanding")
	}
	return o.w.untilDone(&o.party, "deletes "+one.name, func(n *watchNode) (bool, error) {
		err := n.service.Delete(o.w.ctx, one.owner, one.id)
		return err == nil || domain.KindOf(err) == domain.NotFound, unexplainedWatch(o.who+" cannot delete "+one.name, err)
	})
}

// read reads a watch, and compares its counters with what has happened.
func (o *watchOwner) read(one *observedWatch) error {
	return o.w.untilDone(&o.party, "reads "+one.name, func(n *watchNode) (bool, error) {
		found, err := n.service.Get(o.w.ctx, one.owner, one.id)
		if domain.KindOf(err) == domain.NotFound {
			return true, fmt.Errorf("%s cannot read %s, which was created: %w", o.who, one.name, err)
		}
		if err != nil {
			return false, unexplainedWatch(o.who+" cannot read "+one.name, err)
		}
		c := found.Counters
		if total := o.w.changes(one.resource) - one.after; c.Triggered < c.Delivered+c.Errored+c.Cancelled || c.Triggered > total {
			return true, fmt.Errorf("W-13: %s counts %+v, and %d changes were committed", one.name, c, total)
		}
		return true, nil
	})
}

// readWithoutCursor reads a watch that has no cursor because of a crash, once all is well.
func (o *watchOwner) readWithoutCursor() error {
	cursor := o.w.observer.WatchWithoutCursor()
	if cursor == "" {
		return nil
	}
	o.w.pmu.Lock()
	one := o.w.watches[cursor]
	o.w.pmu.Unlock()
	n := o.w.anyNode(o.d)
	if n == nil {
		return nil
	}
	o.w.reached("a watch was stored without its cursor")
	_, err := n.watches.service.Get(o.w.ctx, one.owner, one.id)
	return unexplainedWatch("a watch without a cursor cannot be read", err)
}

// judgeCounters compares the counters of all watches with the changes that were committed. Nothing is
// outstanding.
func (o *watchOwner) judgeCounters() error {
	o.w.pmu.Lock()
	all := make([]*observedWatch, 0, len(o.w.watches))
	for _, one := range o.w.watches {
		if !one.isDeleted {
			all = append(all, one)
		}
	}
	o.w.pmu.Unlock()
	slices.SortFunc(all, func(a, b *observedWatch) int { return slices.Compare(a.id[:], b.id[:]) })
	for _, one := range all {
		err := o.w.untilDone(&o.party, "reads "+one.name, func(n *watchNode) (bool, error) {
			found, err := n.service.Get(o.w.ctx, one.owner, one.id)
			if err != nil {
				return false, unexplainedWatch(o.who+" cannot read "+one.name, err)
			}
			c, total := found.Counters, o.w.changes(one.resource)-one.after
			if c.Triggered != total || c.Delivered+c.Errored != total || c.Cancelled > 0 {
				return true, fmt.Errorf("W-13: %s counts %+v, and %d changes were committed", one.name, c, total)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
