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

// checkEnd checks a state if it is an end: the number of parties that are not done is within the limit for crashes.
func (x *exploration) checkEnd(s *explorationState) error {
	key := fmt.Sprint(s.store)
	unfinished := 0
	for i := range x.Parties {
		if !s.nodes[i].done {
			unfinished++
		}
		key += fmt.Sprintf("|%t\n%s", s.nodes[i].done, s.nodes[i].sightText)
	}
	if unfinished > x.Crashes || x.ends[key] {
		return nil
	}
	x.ends[key] = true
	engine, err := x.restoreEngine(s.store)
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	db, err := client.Connect(client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	if err != nil {
		return err
	}
	defer db.Close()
	options := x.nodeOptions(77)
	options.Exclusive = true // no party is running, so all intents are dead
	v := &endVerifier{exploration: x, db: db, options: options, bundles: x.bundleStates(s.store)}
	if x.Watches {
		return v.verifyWatches(s)
	}
	if x.Topic {
		if err := v.verifyTopic(s); err != nil {
			return err
		}
	}
	if x.Objects {
		return v.verifyObjects(s)
	}
	return v.verifyMailbox(s)
}

// restoreEngine returns an engine with the documents of a store state.
func (x *exploration) restoreEngine(at int) (*embedded.Engine, error) {
	engine, err := embedded.Open(embedded.Options{})
	if err != nil {
		return nil, err
	}
	db, err := client.Connect(client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	if err == nil {
		err = db.Provision(context.Background(), allContainers())
		db.Close()
	}
	for p, chain := range x.stores[at].parts {
		for _, d := range x.store.contents[chain[0]].docs {
			if err == nil && d.json != "" {
				err = createDocument(engine, p, d.json)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

type bundleStatus struct {
	Kind, State string
}

// bundleStates returns the state of each stored bundle.
func (x *exploration) bundleStates(at int) map[string]string {
	found := make(map[string]string)
	for p, chain := range x.stores[at].parts {
		if p.container != containers.Bundles {
			continue
		}
		for id, d := range x.store.contents[chain[0]].docs {
			var b bundleStatus
			if json.Unmarshal([]byte(d.json), &b) == nil && b.Kind == "bundle" {
				found[id] = b.State
			}
		}
	}
	return found
}

// An endVerifier checks one end.
type endVerifier struct {
	*exploration
	db        *client.Database
	options   cosmos.Options
	bundles   map[string]string // states of the stored bundles
	ledger    repositorytest.Ledger
	offered   []domain.Event // events that any party may have saved
	delivered []repositorytest.PeekedBundle
}

func (v *endVerifier) newNode() *cosmos.Repository {
	return cosmos.New(v.db, v.newContent(), v.options)
}

func (v *endVerifier) verifyMailbox(s *explorationState) error {
	if err := v.noteSights(s); err != nil {
		return err
	}
	if err := v.checkStore(); err != nil {
		return err
	}
	if err := v.drainMailbox("committed events are not delivered"); err != nil {
		return err
	}
	if v.Sweeps { // the store accepts the id of a removed event as new
		v.offered = slices.DeleteFunc(v.offered, v.isTaken)
	}
	if len(v.offered) > 0 {
		saved, err := v.newNode().Save(context.Background(), recipient, v.offered)
		if err != nil || saved.Accepted+saved.Duplicates != len(v.offered) {
			return fmt.Errorf("a fresh writer saves %d events again: %+v, %w", len(v.offered), saved, err)
		}
		v.ledger.Saved(0, v.offered...)
	}
	if err := v.drainMailbox("after everything was saved again, not every event is delivered once"); err != nil {
		return err
	}
	return v.checkStore()
}

// !!
func (v *endVerifier) isTaken(e domain.Event) bool {
	return slices.ContainsFunc(v.delivered, func(b repositorytest.PeekedBundle) bool {
		return slices.ContainsFunc(b.Events, func(t repository.StoredEvent) bool { return t.ID == e.ID })
	})
}

// checkStore runs the check of the repository.
func (v *endVerifier) checkStore() error {
	report, err := v.newNode().Check(context.Background(), cosmos.CheckOptions{Recipient: recipient})
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

// drainMailbox peeks and dequeues all bundles, and checks all deliveries with the ledger.
func (v *endVerifier) drainMailbox(otherwise string) error {
	node := v.newNode()
	stores := repositorytest.Stores{Events: node, Bundles: node, Answers: node, Outbox: node}
	drained, err := repositorytest.Drain(context.Background(), stores, recipient, groups)
	v.delivered = append(v.delivered, drained...)
	slices.SortStableFunc(v.delivered, func(a, b repositorytest.PeekedBundle) int { return int(a.First - b.First) })
	if err == nil {
		err = v.ledger.Check(v.delivered)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", otherwise, err)
	}
	return nil
}

// noteSights records the answers that the parties received, and compares them with the store.
func (v *endVerifier) noteSights(s *explorationState) error {
	seen := make(map[domain.BundleID]repositorytest.PeekedBundle)
	dequeued := make(map[domain.BundleID]int)
	if err := v.noteSightsOf(v.events, seen, dequeued); err != nil {
		return err
	}
	v.noteOffers()
	for i := range v.Parties {
		if after := v.Parties[i].After; after > 0 {
			if err := checkOrder(s.nodes[after-1].sights, s.nodes[i].sights, !v.Session); err != nil {
				return fmt.Errorf("%s, after %s: %w", v.Parties[i].Name, v.Parties[after-1].Name, err)
			}
		}
		if err := v.noteSightsOf(s.nodes[i].sights, seen, dequeued); err != nil {
			return fmt.Errorf("%s: %w", v.Parties[i].Name, err)
		}
	}
	for id, b := range seen {
		if v.bundles[id.String()] == "dequeued" {
			v.delivered = append(v.delivered, b)
		}
	}
	for id, times := range dequeued {
		if times > 1 {
			return fmt.Errorf("%[2]d Dequeues of bundle %[1]s succeeded", id, times)
		}
	}
	return nil
}

func (v *endVerifier) noteSightsOf(saw []sight, seen map[domain.BundleID]repositorytest.PeekedBundle, dequeued map[domain.BundleID]int) error {
	for i := range saw {
		at := &saw[i]
		if err := v.checkSight(at); err != nil {
			return err
		}
		switch at.what {
		case "saved":
			if at.err == nil {
				v.ledger.Saved(0, at.events...)
			}
		case "peeked":
			if at.err != nil {
				continue
			}
			if at.bundle.LacksContent() {
				continue // a bundle without content is not returned to the actor
			}
			if other, ok := seen[at.bundle.ID]; ok && !sameBundle(other, at.bundle) {
				return fmt.Errorf("two parties received different contents of bundle %s", at.bundle.ID)
			}
			seen[at.bundle.ID] = at.bundle
		case "dequeued":
			if at.err != nil {
				continue
			}
			dequeued[at.bundle.ID]++
			if state := v.bundles[at.bundle.ID.String()]; state != "dequeued" {
				return fmt.Errorf("a Dequeue of bundle %s succeeded, but its state is %s", at.bundle.ID, state)
			}
		}
	}
	return nil
}

// noteOffers records the events that parties may have saved without receiving an answer.
func (v *endVerifier) noteOffers() {
	offered := make(map[domain.EventID]int)
	for i := range v.Parties {
		for _, e := range v.Parties[i].Offers {
			offered[e.ID]++
		}
	}
	for i := range v.Parties {
		for _, e := range v.Parties[i].Offers {
			saver := i + 1
			if offered[e.ID] > 1 { // several parties save the event, so its order is undefined
				saver = 100 + int(e.ID[0])
			}
			v.ledger.Unsure(saver, e)
			v.offered = append(v.offered, e)
		}
	}
}

// checkSight returns an error unless the answer is permitted. Without faults every action succeeds in the end. With
// faults the answer may be uncertain, unavailable or busy.
func (v *endVerifier) checkSight(at *sight) error {
	kind := domain.KindOf(at.err)
	switch {
	case at.err == nil:
		return nil
	case (at.what == "dequeued" || at.what == "marked") && kind == domain.NotFound && len(v.Parties) > 1:
		return nil // a different party has dequeued the bundle
	case (kind == domain.Uncertain || kind == domain.Unavailable || kind == domain.Busy) && v.Lost+v.Stale+v.Crashes > 0:
		return nil
	}
	return fmt.Errorf("%s: the answer was %w", at.what, at.err)
}

func sameBundle(a, b repositorytest.PeekedBundle) bool {
	if a.Content == domain.Request { // the domain may have produced the content again
		a.Object, a.Body = b.Object, b.Body
	}
	return reflect.DeepEqual(a.Bundle, b.Bundle) && reflect.DeepEqual(a.Events, b.Events)
}

// checkOrder compares the answers that two parties received. The second party began after the first was done, so the
// answers in after must reflect the actions in before. fresh is true if reads are never stale.
func checkOrder(before, after []sight, fresh bool) error {
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
			return fmt.Errorf("a Peek returned bundle %s after it was dequeued", at.bundle.ID)
		case at.what == "peeked" && gone[at.bundle.Object] && !at.bundle.LacksContent():
			return fmt.Errorf("a Peek returned object %s after it was marked as deleted", at.bundle.Object)
		case at.what == "empty" && saved && fresh && i == 0:
			return errors.New("a Peek returned no data after an event was saved")
		}
	}
	return nil
}
