//go:build unix

package crashsites

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/domain"
)

const (
	objectSenders = 3
	// sentKeys is the number of objects in a message. If all objects of a message spill rows, the writes exceed the
	// limit of one batch, so the store splits the batch.
	sentKeys = 24
	// sentRounds is the number of rounds per bucket.
	sentRounds = 12
)

// clockLead is longer than the lease of a job. Each node's clock is ahead of its dead predecessor's clock by clockLead.
// So the predecessor's leases have expired, and the node resumes its jobs immediately.
const clockLead = 2 * time.Minute

// runStoring kills the node at each of the crash sites while it serves clients. At the end each client compares the
// stored objects with the answers that it received.
func (run *crashRun) runStoring(ctx context.Context, sites []crashSite) error {
	run.orders.Objects, run.domain.silent = run.stage, true
	stop := make(chan struct{})
	all, ctx := errgroup.WithContext(ctx)
	for _, work := range run.objectClients() {
		all.Go(func() error { return work(ctx, stop) })
	}
	all.Go(func() error {
		defer close(stop)
		for _, c := range sites {
			if err := run.killAtSite(ctx, c); err != nil {
				return err
			}
		}
		return run.restartHub(ctx, crashSite{})
	})
	if err := all.Wait(); err != nil {
		run.hub.killProcess()
		return fmt.Errorf("%w\nthe node was killed at: %v\nthe output of the last one: %s", err, run.killed, run.hub.errorOutput())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), run.patience)
	defer cancel()
	return run.hub.stopProcess(ctx)
}

// objectClients returns the clients of a node. Each client runs until stop is closed.
func (run *crashRun) objectClients() (all []func(ctx context.Context, stop <-chan struct{}) error) {
	if run.stage == forgetting { // only one client, because the retention depends on one clock
		return append(all, (&sweepClient{w: run}).sweepUntil)
	}
	for i := range objectSenders {
		switch run.stage {
		case crawling:
			all = append(all, (&crawlClient{w: run, number: i}).crawlUntil)
		case relaying:
			all = append(all, (&topicClient{run, i}).relayUntil)
		case patching:
			all = append(all, (&patchClient{w: run, number: i}).patchUntil)
		default:
			all = append(all, (&objectSender{w: run, number: i, deliveries: make(map[string]map[string]*deliveryCount)}).sendUntil)
		}
	}
	return all
}

// sendEvents sends a message until it is answered. It calls before in front of each attempt.
func (run *crashRun) sendEvents(ctx context.Context, path string, message []objectEvent, before func()) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	err = run.load.retryUntilDone(ctx, func() error {
		before()
		_, err := run.load.sendRequest(ctx, http.MethodPost, path, "", body)
		return err
	})
	if err != nil {
		return fmt.Errorf("send events to %s: %w", path, err)
	}
	return nil
}

// objectsOf returns the objects of a bucket by key.
func (run *crashRun) objectsOf(ctx context.Context, bucket string) (of map[string]storedObject, err error) {
	err = run.load.retryUntilDone(ctx, func() error {
		a, err := run.load.sendRequest(ctx, http.MethodGet, "/"+bucket, "", nil)
		if err == nil {
			of = make(map[string]storedObject)
			err = json.Unmarshal(a.body, &of)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", bucket, err)
	}
	return of, nil
}

// awaitJob starts a job, and returns it when it has ended.
func (run *crashRun) awaitJob(ctx context.Context, path string, body []byte) (found startedJob, err error) {
	ask := func(method, path string, body []byte) error {
		return run.load.retryUntilDone(ctx, func() error {
			a, err := run.load.sendRequest(ctx, method, path, "", body)
			if err == nil {
				err = json.Unmarshal(a.body, &found)
			}
			return err
		})
	}
	if err := ask(http.MethodPost, path, body); err != nil {
		return found, fmt.Errorf("start a job by %s: %w", path, err)
	}
	for found.State == domain.JobRunning {
		if err := clock.Sleep(ctx, 5*time.Millisecond); err != nil { // pause between two polls
			return found, err
		}
		if err := ask(http.MethodGet, fmt.Sprintf("/jobs/%s/%s", found.Kind, found.ID), nil); err != nil {
			return found, fmt.Errorf("read %s %s: %w", found.Kind, found.ID, err)
		}
	}
	return found, nil
}

// A deliveryCount counts the attempts to deliver an event, and the attempts that were answered.
type deliveryCount struct{ sent, answered int64 }

// An objectSender sends the events of its buckets, one bucket after the other.
type objectSender struct {
	w          *crashRun
	number     int
	deliveries map[string]map[string]*deliveryCount // deliveries by object (bucket and key) and event
}

func (s *objectSender) sendUntil(ctx context.Context, stop <-chan struct{}) error {
	for n := 0; ctx.Err() == nil; n++ {
		bucket := fmt.Sprintf("bucket-%d-%d", s.number, n)
		for round := 1; round <= sentRounds; round++ {
			select {
			case <-stop:
				return s.compareAll(ctx)
			default:
			}
			var newest []objectEvent
			for key := range sentKeys {
				newest = append(newest, objectEvent{fmt.Sprint("key-", key), fmt.Sprintf("C@%04X", 16*round)})
			}
			// The first event is late. The second is a duplicate, possibly of a spilled row.
			late := []objectEvent{
				{"key-0", fmt.Sprintf("D@%04X", 16*(round/2)+1)},
				{"key-1", fmt.Sprintf("C@%04X", 16*((round+1)/2))},
			}
			for _, message := range [][]objectEvent{newest, late} {
				if err := s.sendMessage(ctx, bucket, message); err != nil {
					return err
				}
			}
		}
	}
	return ctx.Err()
}

// sendMessage sends a message until it is answered.
func (s *objectSender) sendMessage(ctx context.Context, bucket string, message []objectEvent) error {
	err := s.w.sendEvents(ctx, "/"+bucket, message, func() {
		for _, e := range message {
			s.countOf(bucket, e).sent++
		}
	})
	if err != nil {
		return err
	}
	for _, e := range message {
		s.countOf(bucket, e).answered++
	}
	return nil
}

// countOf returns the delivery count of an event, and creates it if necessary.
func (s *objectSender) countOf(bucket string, e objectEvent) *deliveryCount {
	object := bucket + "/" + e.Key
	if s.deliveries[object] == nil {
		s.deliveries[object] = make(map[string]*deliveryCount)
	}
	d := s.deliveries[object][e.Event]
	if d == nil {
		d = &deliveryCount{}
		s.deliveries[object][e.Event] = d
	}
	return d
}

// compareAll compares the stored objects with the sent events.
func (s *objectSender) compareAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.w.patience)
	defer cancel()
	stored := make(map[string]map[string]storedObject) // stored objects by bucket and key
	for object, events := range s.deliveries {
		bucket, key, _ := strings.Cut(object, "/")
		if stored[bucket] == nil {
			of, err := s.w.objectsOf(ctx, bucket)
			if err != nil {
				return err
			}
			stored[bucket] = of
		}
		if err := compareObject(stored[bucket][key], events); err != nil {
			return fmt.Errorf("object %s: %w", object, err)
		}
	}
	return nil
}

// compareObject returns an error unless an object matches the sent events.
func compareObject(o storedObject, events map[string]*deliveryCount) error {
	current := ""
	for text, d := range events {
		kind, sequencer, _ := strings.Cut(text, "@")
		row := map[string]string{"C": "Created", "D": "Deleted"}[kind] + " " + sequencer
		duplicates, isStored := o.Duplicates[row]
		if n := duplicates + 1; !isStored && d.answered > 0 || isStored && (n < d.answered || n > d.sent) {
			return fmt.Errorf("event %s was answered %d times and sent %d times; it is stored: %t, with %d duplicates", text, d.answered, d.sent, isStored, duplicates)
		}
		if isStored && kind == "C" { // the newest event of each object is a Created event
			current = max(current, sequencer)
		}
	}
	if len(o.Duplicates) > len(events) || o.Current != current {
		return fmt.Errorf("it has %d rows and the current row %q, but %d events were sent, of which %q is the last", len(o.Duplicates), o.Current, len(events), current)
	}
	return nil
}
