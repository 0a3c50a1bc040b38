package explorer

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// keepingAt returns a retention of two seconds and a clock. In a preparation, the clock shows the time of the
// preparation. After the preparation, it shows a time at which whole objects may be removed.
func keepingAt(isPreparing bool) repository.ObjectKeeping {
	at := objecttest.FirstMoment.Add(15 * 24 * time.Hour)
	if isPreparing {
		at = objecttest.FirstMoment.Add(5 * time.Second)
	}
	return repository.ObjectKeeping{Retention: domain.ObjectRetention(2 * time.Second), Clock: func() time.Time { return at }}
}

// forgetTimes returns two times: a row may be forgotten if it is older than the first time, and a dead object if it is
// older than the second time.
func forgetTimes() (rows, dead time.Time) {
	k := keepingAt(false)
	now := k.Clock()
	return now.Add(-time.Duration(k.Retention)), now.Add(-domain.MinDeadRetention - time.Hour)
}

// forgetRows sweeps the bucket of the scenarios.
func forgetRows(ctx context.Context, s repository.ObjectSweeper) error {
	page, err := s.Forget(ctx, repository.ObjectShard{Bucket: "bucket"}, "", 100)
	if err == nil {
		err = page.Failure
	}
	return err
}

// Forget sweeps the objects.
func (m *Member) Forget() { m.noteSight(sight{what: "forgot", err: forgetRows(m.ctx, m.objects)}) }

func forgetter(name string) Party { return partyOf(name, (*Member).Forget) }

// forgetScenarios returns the scenarios in which old rows are forgotten while events of their object arrive.
func forgetScenarios() []*Scenario {
	const isNew = "+1296000"                                                               // seconds: 15 days
	old := prepareWith(ingestAll(reportsOf("key", "[C@10+1] [C@20+2] [C@30+3] [C@40+4]"))) // 10 and 20 are spilled
	dead := prepareWith(ingestAll(reportsOf("key", "[C@10+1] [D@20+2]")))
	return []*Scenario{
		{
			Name: "object-forget-late", Quick: true, Text: "a late event of an object arrives while rows before and after it are forgotten; a crash, a lost reply",
			Objects: true, Forgets: true, Crashes: 1, Lost: 1, Prepare: old,
			Parties: []Party{forgetter("forget"), ingester("late", reportsOf("key", "[C@25+2]"))},
		},
		{
			Name: "object-forget-again", Quick: true, Text: "a spilled row is forgotten while its event is delivered again, and a new one; a crash, a lost reply",
			Objects: true, Forgets: true, Crashes: 1, Lost: 1, Prepare: old,
			Parties: []Party{forgetter("forget"), ingester("again", reportsOf("key", "[C@10+1] [D@50"+isNew+"]"))},
		},
		{
			Name: "object-forget-dead", Quick: true, Text: "a deleted object is forgotten whole while its first event is delivered again, and it is created again; a crash, a lost reply",
			Objects: true, Forgets: true, Crashes: 1, Lost: 1, Prepare: dead,
			Parties: []Party{forgetter("forget"), ingester("again", reportsOf("key", "[C@10+1]"), reportsOf("key", "[C@60"+isNew+"]"))},
		},
		{
			Name: "object-forget-dead-stale", Quick: true, Text: "the same on a Session account, a stale read",
			Objects: true, Forgets: true, Session: true, Stale: 1, Behind: 2, Prepare: dead,
			Parties: []Party{forgetter("forget"), ingester("again", reportsOf("key", "[C@10+1]"), reportsOf("key", "[C@60"+isNew+"]"))},
		},
		{
			Name: "object-forget-forget", Quick: true, Text: "two nodes sweep at the same time while a late event arrives; a crash, a lost reply",
			Objects: true, Forgets: true, Crashes: 1, Lost: 1, Prepare: old,
			Parties: []Party{forgetter("forget a"), forgetter("forget b"), ingester("late", reportsOf("key", "[C@35/v+4]"))},
		},
	}
}

// verifyForgotten checks that new events are stored, and delivers all messages again. Forgotten rows must not
// reappear. After another sweep, the objects must equal the objects of a node in memory.
func (v *endVerifier) verifyForgotten(s *explorationState, store *objects.Store, messages [][]repository.ObjectReport) error {
	if err := v.compareNew(s, store); err != nil {
		return err
	}
	if err := redeliver(store, messages); err != nil {
		return err
	}
	name := objectName("key")
	ctx := context.Background()
	prepared, later := keepingAt(true), keepingAt(false)
	clock := prepared.Clock
	oracle := memory.NewObjectsWithRetention(repository.ObjectKeeping{Retention: prepared.Retention, Clock: func() time.Time { return clock() }})
	for _, at := range v.events {
		if err := redeliver(oracle, [][]repository.ObjectReport{at.reports}); err != nil {
			return err
		}
	}
	rows, err := oracle.History(ctx, name, domain.ObjectOrder{}, 100)
	if err != nil {
		return err
	}
	clock = later.Clock
	if err := forgetRows(ctx, oracle); err != nil {
		return err
	}
	if v.hasForgotten(s) {
		if err := compareForgotten(store, oracle, name, rows); err != nil {
			return err
		}
	}
	for _, o := range []repository.ObjectLedger{store, oracle} {
		if err := redeliver(o, messages); err != nil {
			return err
		}
		if err := forgetRows(ctx, o); err != nil {
			return err
		}
	}
	return compareObject(store, oracle, name)
}

// compareNew returns an error unless the store has all answered events that are too new to be forgotten.
func (v *endVerifier) compareNew(s *explorationState, store *objects.Store) error {
	k := keepingAt(false)
	for i := range v.Parties {
		for n, at := range s.nodes[i].sights {
			if n >= len(v.Parties[i].Messages) || at.err != nil {
				continue
			}
			for _, r := range at.reports {
				if r.Time.Before(k.Clock().Add(-time.Duration(k.Retention))) {
					continue
				}
				if _, err := store.Row(context.Background(), r.Name, r.ID()); err != nil {
					return fmt.Errorf("L1: event %+v was answered: %w", r.ID(), err)
				}
			}
		}
	}
	return nil
}

// hasForgotten reports whether a sweep has certainly forgotten all rows that may be forgotten: a sweep of a party
// succeeded, and no read was stale. A sweep with stale reads may miss rows.
func (v *endVerifier) hasForgotten(s *explorationState) bool {
	if v.Stale > 0 {
		return false
	}
	for i := range v.Parties {
		for _, at := range s.nodes[i].sights {
			if at.what == "forgot" && at.err == nil {
				return true
			}
		}
	}
	return false
}

// compareForgotten returns an error if the store has a row of the preparation that the oracle has forgotten.
func compareForgotten(store *objects.Store, oracle *memory.Objects, name domain.ObjectName, rows []domain.ObjectRow) error {
	for i := range rows {
		if _, err := oracle.Row(context.Background(), name, rows[i].ID()); domain.KindOf(err) != domain.NotFound {
			if err != nil {
				return err
			}
			continue
		}
		switch _, err := store.Row(context.Background(), name, rows[i].ID()); {
		case err == nil:
			return fmt.Errorf("L7: row %+v was forgotten, but still exists", rows[i].ID())
		case domain.KindOf(err) != domain.NotFound:
			return err
		}
	}
	return nil
}

// compareObject returns an error unless an object is the same in two stores, or missing in both.
func compareObject(store, oracle repository.Objects, name domain.ObjectName) error {
	var texts [2]string
	for i, o := range []repository.Objects{store, oracle} {
		text, err := describeObject(o, name)
		if err != nil && domain.KindOf(err) != domain.NotFound {
			return err
		}
		texts[i] = text
	}
	if texts[0] != texts[1] {
		return fmt.Errorf("object %s is %q, want %q", name.Key(), texts[0], texts[1])
	}
	return nil
}
