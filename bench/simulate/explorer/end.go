package explorer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// end checks a state that may be the last one: all parties are done, but for as many
// as may crash.
func (w *world) end(s *state) error {
	key := fmt.Sprint(s.store)
	unfinished := 0
	for i := range w.Parties {
		if !s.nodes[i].done {
			unfinished++
		}
		key += fmt.Sprintf("|%t\n%s", s.nodes[i].done, s.nodes[i].seen)
	}
	if unfinished > w.Crashes || w.ends[key] {
		return nil
	}
	w.ends[key] = true
	engine, err := w.restored(s.store)
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	db, err := client.Connect(client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	options := w.options(77)
	options.Exclusive = true // whoever has crashed is dead
	j := &judge{world: w, db: db, options: options, bundles: w.bundles(s.store)}
	if w.Watches {
		return j.judgeWatches(s)
	}
	if w.Topic {
		if err := j.judgeTopic(s); err != nil {
			return err
		}
	}
	if w.Objects {
		return j.judgeObjects(s)
	}
	return j.judge(s)
}

// restored returns an engine that holds what the store held.
func (w *world) restored(at int) (*embedded.Engine, error) {
	engine, err := embedded.Open(embedded.Options{})
	if err != nil {
		return nil, err
	}
	db, err := client.Connect(client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	if err == nil {
		err = db.Provision(context.Background(), allContainers())
		db.Close()
	}
	for p, chain := range w.stores[at].parts {
		for _, d := range w.store.contents[chain[0]].docs {
			if err == nil && d.json != "" {
				err = create(engine, p, d.json)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

type bundle struct {
	Kind, State string
}

// bundles returns the state of each bundle in the store.
func (w *world) bundles(at int) map[string]string {
	found := make(map[string]string)
	for p, chain := range w.stores[at].parts {
		if p.container != containers.Bundles {
			continue
		}
		for id, d := range w.store.contents[chain[0]].docs {
			var b bundle
			if json.Unmarshal([]byte(d.json), &b) == nil && b.Kind == "bundle" {
				found[id] = b.State
			}
		}
	}
	return found
}

// A judge looks at one end.
type judge struct {
	*world
	db      *client.Database
	options cosmos.Options
	bundles map[string]string // in the store, their states
	ledger  repositorytest.Ledger
	offered []domain.Event // to any Save
	taken   []repositorytest.Peeked
}

func (j *judge) node() *cosmos.Repository { return cosmos.New(j.db, j.content(), j.options) }

func (j *judge) judge(s *state) error {
	if err := j.sights(s); err != nil {
		return err
	}
	if err := j.isSound(); err != nil {
		return err
	}
	if err := j.drain("what was committed is not what is delivered"); err != nil {
		return err
	}
	if j.Sweeps { // an id that was removed is unknown again
		j.offered = slices.DeleteFunc(j.offered, j.isTaken)
	}
	if len(j.offered) > 0 {
		saved, err := j.node().Save(context.Background(), actor, j.offered)
		if err != nil || saved.Accepted+saved.Duplicates != len(j.offered) {
			return fmt.Errorf("a fresh writer saves %d events again: %+v, %w", len(j.offered), saved, err)
		}
		j.ledger.Saved(0, j.offered...)
	}
	if err := j.drain("after everything was saved again, not everything is delivered once"); err != nil {
		return err
	}
	return j.isSound()
}

// isTaken reports whether an event was delivered and confirmed.
func (j *judge) isTaken(e domain.Event) bool {
	return slices.ContainsFunc(j.taken, func(b repositorytest.Peeked) bool {
		return slices.ContainsFunc(b.Events, func(t repository.StoredEvent) bool { return t.ID == e.ID })
	})
}

// isSound runs the check of the repository.
func (j *judge) isSound() error {
	report, err := j.node().Check(context.Background(), cosmos.CheckOptions{Recipient: actor})
	if err != nil {
		return err
	}
	for i := range report.Findings {
		if f := &report.Findings[i]; f.Damage {
			return fmt.Errorf("the check finds damage: %s", f.String())
		}
	}
	return nil
}

// drain takes all that waits, and holds what was ever delivered to the ledger.
func (j *judge) drain(otherwise string) error {
	node := j.node()
	stores := repositorytest.Stores{Events: node, Bundles: node, Answers: node, Outbox: node}
	drained, err := repositorytest.Drain(context.Background(), stores, actor, groups)
	j.taken = append(j.taken, drained...)
	slices.SortStableFunc(j.taken, func(a, b repositorytest.Peeked) int { return int(a.First - b.First) })
	if err == nil {
		err = j.ledger.Check(j.taken)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", otherwise, err)
	}
	return nil
}

// sights takes in what the parties were told, and holds it to what is stored.
func (j *judge) sights(s *state) error {
	seen := make(map[domain.BundleID]repositorytest.Peeked)
	dequeued := make(map[domain.BundleID]int)
	if err := j.sightsOf(j.events, seen, dequeued); err != nil {
		return err
	}
	j.offers()
	for i := range j.Parties {
		if after := j.Parties[i].After; after > 0 {
			if err := overtaken(s.nodes[after-1].saw, s.nodes[i].saw, !j.Session); err != nil {
				return fmt.Errorf("%s, after %s: %w", j.Parties[i].Name, j.Parties[after-1].Name, err)
			}
		}
		if err := j.sightsOf(s.nodes[i].saw, seen, dequeued); err != nil {
			return fmt.Errorf("%s: %w", j.Parties[i].Name, err)
		}
	}
	for id, b := range seen {
		if j.bundles[id.String()] == "dequeued" {
			j.taken = append(j.taken, b)
		}
	}
	for id, times := range dequeued {
		if times > 1 {
			return fmt.Errorf("the bundle %s was dequeued with success %d times", id, times)
		}
	}
	return nil
}

func (j *judge) sightsOf(saw []sight, seen map[domain.BundleID]repositorytest.Peeked, dequeued map[domain.BundleID]int) error {
	for i := range saw {
		at := &saw[i]
		if err := j.isHonest(at); err != nil {
			return err
		}
		switch at.what {
		case "saved":
			if at.err == nil {
				j.ledger.Saved(0, at.events...)
			}
		case "peeked":
			if at.err != nil {
				continue
			}
			if at.bundle.LacksContent() {
				continue // it is not handed out
			}
			if other, ok := seen[at.bundle.ID]; ok && !sameBundle(other, at.bundle) {
				return fmt.Errorf("the bundle %s looked different to two parties", at.bundle.ID)
			}
			seen[at.bundle.ID] = at.bundle
		case "dequeued":
			if at.err != nil {
				continue
			}
			dequeued[at.bundle.ID]++
			if state := j.bundles[at.bundle.ID.String()]; state != "dequeued" {
				return fmt.Errorf("the bundle %s was dequeued with success, but is %s", at.bundle.ID, state)
			}
		}
	}
	return nil
}

// offers notes the events that the parties may have saved although nobody was told.
func (j *judge) offers() {
	offered := make(map[domain.EventID]int)
	for i := range j.Parties {
		for _, e := range j.Parties[i].Offers {
			offered[e.ID]++
		}
	}
	for i := range j.Parties {
		for _, e := range j.Parties[i].Offers {
			saver := i + 1
			if offered[e.ID] > 1 { // whose it is depends on who is first, so its order is nobody's
				saver = 100 + int(e.ID[0])
			}
			j.ledger.Unsure(saver, e)
			j.offered = append(j.offered, e)
		}
	}
}

// isHonest reports whether a party may be told that: without faults everything
// succeeds in the end, and with them nothing fails but what may have happened or can
// be tried again.
func (j *judge) isHonest(at *sight) error {
	kind := domain.KindOf(at.err)
	switch {
	case at.err == nil:
		return nil
	case (at.what == "dequeued" || at.what == "marked") && kind == domain.NotFound && len(j.Parties) > 1:
		return nil // another has dequeued it
	case (kind == domain.Uncertain || kind == domain.Unavailable || kind == domain.Busy) && j.Lost+j.Stale+j.Crashes > 0:
		return nil
	}
	return fmt.Errorf("%s: it was told %w", at.what, at.err)
}

func sameBundle(a, b repositorytest.Peeked) bool {
	if a.Content == domain.Request { // it may have been made again
		a.Object, a.Body = b.Object, b.Body
	}
	return reflect.DeepEqual(a.Bundle, b.Bundle) && reflect.DeepEqual(a.Events, b.Events)
}

// overtaken holds what a party saw that began after another was done to what that
// was told.
func overtaken(before, after []sight, fresh bool) error {
	saved, dequeued, gone := false, make(map[domain.BundleID]bool), make(map[string]bool)
	for i := range before {
		if before[i].err != nil {
			continue
		}
		switch before[i].what {
		case "saved":
			saved = true
		case "dequeued":
			dequeued[before[i].bundle.ID] = true
		case "marked":
			gone[before[i].bundle.Object] = before[i].bundle.Gone
		}
	}
	for i := range after {
		switch at := &after[i]; {
		case at.what == "peeked" && dequeued[at.bundle.ID]:
			return fmt.Errorf("it peeked bundle %s, which had been dequeued", at.bundle.ID)
		case at.what == "peeked" && gone[at.bundle.Object] && !at.bundle.LacksContent():
			return fmt.Errorf("it was handed out object %s, which had been marked as deleted", at.bundle.Object)
		case at.what == "empty" && saved && fresh && i == 0:
			return errors.New("it peeked nothing, although something had been saved")
		}
	}
	return nil
}
