package explorer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A tally counts the deliveries of an event. The unsure deliveries have no answer, and may have been applied.
type tally struct{ answered, unsure int64 }

// verifyObjects returns an error unless each answered event is stored once. The count of the event must be at least the
// number of answered deliveries, and at most the number of all its deliveries. Then a new node delivers all messages
// again, and the objects must equal the objects of a node in memory.
func (v *endVerifier) verifyObjects(s *explorationState) error {
	tallies, messages, err := v.tallyEvents(s)
	if err != nil {
		return err
	}
	store := objects.New(v.db, v.objectOptions(newSeeded(77), false))
	if v.Forgets {
		return v.verifyForgotten(s, store, messages)
	}
	names := slices.SortedFunc(maps.Keys(tallies), domain.CompareObjectNames)
	for _, name := range names {
		if err := compareCounts(store, name, tallies[name]); err != nil {
			return fmt.Errorf("object %s: %w", name.Key(), err)
		}
	}
	oracle := memory.NewObjects()
	for _, o := range []repository.Objects{store, oracle} {
		if err := redeliver(o, messages); err != nil {
			return err
		}
	}
	if v.Crawl != nil {
		return v.Crawl.verifyObjects(store, names)
	}
	for _, name := range names {
		got, err := describeObject(store, name)
		if err != nil {
			return err
		}
		want, err := describeObject(oracle, name)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("object %s is %s, want %s", name.Key(), got, want)
		}
	}
	return nil
}

// redeliver delivers all messages again.
func redeliver(o repository.Objects, messages [][]repository.ObjectReport) error {
	for _, message := range messages {
		results, err := o.Ingest(context.Background(), message)
		for _, r := range results {
			if err == nil {
				err = r.Err
			}
		}
		if err != nil {
			return fmt.Errorf("a fresh node delivers a message again: %w", err)
		}
	}
	return nil
}

// tallyEvents returns the tally of each event, and all messages.
func (v *endVerifier) tallyEvents(s *explorationState) (map[domain.ObjectName]map[domain.ObjectRowID]*tally, [][]repository.ObjectReport, error) {
	all := make(map[domain.ObjectName]map[domain.ObjectRowID]*tally)
	var messages [][]repository.ObjectReport
	add := func(message []repository.ObjectReport, isAnswered bool) {
		messages = append(messages, message)
		for i := range message {
			r := &message[i]
			if all[r.Name] == nil {
				all[r.Name] = make(map[domain.ObjectRowID]*tally)
			}
			t := all[r.Name][r.ID()]
			if t == nil {
				t = &tally{}
				all[r.Name][r.ID()] = t
			}
			if isAnswered {
				t.answered++
			} else {
				t.unsure++
			}
		}
	}
	for _, at := range v.events {
		add(at.reports, true)
	}
	for i := range v.Parties {
		saw := s.nodes[i].sights
		for k, message := range v.Parties[i].Messages {
			isAnswered := k < len(saw) && saw[k].err == nil
			if k < len(saw) {
				if err := v.checkSight(&saw[k]); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", v.Parties[i].Name, err)
				}
			}
			add(message, isAnswered)
		}
	}
	return all, messages, nil
}

// compareCounts compares the rows of an object with the deliveries of its events.
func compareCounts(store *objects.Store, name domain.ObjectName, events map[domain.ObjectRowID]*tally) error {
	rows, err := store.History(context.Background(), name, domain.ObjectOrder{}, 100)
	if err != nil && domain.KindOf(err) != domain.NotFound {
		return err
	}
	counts := make(map[domain.ObjectRowID]int64)
	for i := range rows {
		counts[rows[i].ID()] = 1 + rows[i].Duplicates
	}
	for id, t := range events {
		if n := counts[id]; n < t.answered || n > t.answered+t.unsure {
			return fmt.Errorf("L5: event %+v was counted %d times; of its deliveries %d were answered, and %d may have been stored", id, n, t.answered, t.unsure)
		}
	}
	return nil
}

// describeObject returns the rows of an object, without their duplicates.
func describeObject(o repository.Objects, name domain.ObjectName) (string, error) {
	object, err := o.Object(context.Background(), name)
	if err != nil {
		return "", err
	}
	rows, err := o.History(context.Background(), name, domain.ObjectOrder{}, 100)
	slices.Reverse(rows)
	for i := range rows {
		rows[i].Duplicates = 0
	}
	return objecttest.Describe(rows, object.Current), err
}
