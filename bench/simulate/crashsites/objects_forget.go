//go:build unix

package crashsites

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const (
	objectRetention = domain.ObjectRetention(time.Hour)
	sweptKeys       = 12
	sweptRounds     = 6

	// Each bucket has its own period of time. In the middle of the period, the events from the start of the period are
	// forgotten.
	timeOfBucket = 30 * 24 * time.Hour
	sweepAfter   = 15 * 24 * time.Hour
	sweepPause   = 16 * time.Minute // pause between two attempts of a sweep, longer than the lease of a sweep
)

// A sweepClient sweeps buckets, one after the other, and compares the result with a store in memory that applies the
// same rules and is never killed.
type sweepClient struct {
	w      *crashRun
	oracle *memory.Objects
	bucket string
	begin  time.Time
	now    time.Time
}

func (c *sweepClient) sweepUntil(ctx context.Context, stop <-chan struct{}) error {
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		c.bucket, c.begin = fmt.Sprint("swept-", n), objecttest.FirstMoment.Add(time.Duration(n)*timeOfBucket)
		c.oracle = memory.NewObjectsWithRetention(repository.ObjectKeeping{Retention: objectRetention, Clock: func() time.Time { return c.now }})
		if err := c.sweepBucket(ctx); err != nil {
			return fmt.Errorf("bucket %s: %w", c.bucket, err)
		}
	}
	return ctx.Err()
}

// sweepBucket stores events, sweeps the rows that may be forgotten, and delivers the events again together with a few
// new events. Every second object is dead, so the sweep removes the whole object.
func (c *sweepClient) sweepBucket(ctx context.Context) error {
	c.now = c.begin.Add(time.Minute)
	var messages [][]objectEvent
	for round := 1; round <= sweptRounds; round++ {
		var message []objectEvent
		for key := range sweptKeys {
			kind := "C"
			if round == sweptRounds && key%2 == 0 {
				kind = "D"
			}
			message = append(message, c.newEvent(key, kind, 16*round, c.begin.Add(time.Duration(round)*time.Second)))
		}
		messages = append(messages, message)
	}
	if err := c.sendMessages(ctx, messages...); err != nil {
		return err
	}
	c.now = c.begin.Add(sweepAfter)
	if err := c.sweepShards(ctx); err != nil {
		return err
	}
	if err := c.sendMessages(ctx, messages...); err != nil {
		return err
	}
	if err := c.sendMessages(ctx, []objectEvent{c.newEvent(0, "C", 0x700, c.now), c.newEvent(1, "C", 0x700, c.now)}); err != nil {
		return err
	}
	return c.compareObjects(ctx)
}

// newEvent returns an event of the object key at a time.
func (c *sweepClient) newEvent(key int, kind string, sequencer int, at time.Time) objectEvent {
	return objectEvent{fmt.Sprint("key-", key), fmt.Sprintf("%s@%04X+%d", kind, sequencer, int(at.Sub(objecttest.FirstMoment).Seconds()))}
}

// sendMessages sends messages, and ingests them once into the store in memory.
func (c *sweepClient) sendMessages(ctx context.Context, messages ...[]objectEvent) error {
	for _, message := range messages {
		if err := c.w.sendEvents(ctx, c.addTime("/"+c.bucket), message, func() {}); err != nil {
			return err
		}
		var reports []repository.ObjectReport
		for _, s := range message {
			name, err := domain.ParseObjectName(c.bucket, s.Key)
			if err != nil {
				return err
			}
			reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: parseSent(s.Event)})
		}
		if _, err := c.oracle.Ingest(ctx, reports); err != nil {
			return err
		}
	}
	return nil
}

// addTime adds the current time to a path.
func (c *sweepClient) addTime(path string) string {
	return fmt.Sprintf("%s?now=%d", path, c.now.Unix())
}

// sweepShards sweeps all shards. The next attempt resumes the sweep of a killed node. If a sweep ended but its request
// was not answered, the next attempt does nothing, because no sweep is due.
func (c *sweepClient) sweepShards(ctx context.Context) error {
	err := c.w.load.retryUntilDone(ctx, func() error {
		c.now = c.now.Add(sweepPause)
		_, err := c.w.load.sendRequest(ctx, http.MethodPost, c.addTime("/sweeps"), "", nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	shards, err := c.oracle.Shards(ctx)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		for page := (repository.SweptObjects{More: true}); page.More; {
			if page, err = c.oracle.Forget(ctx, shard, page.After, 100); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareObjects compares the objects of the node with the objects of the store in memory.
func (c *sweepClient) compareObjects(ctx context.Context) error {
	stored, err := c.w.objectsOf(ctx, c.bucket)
	if err != nil {
		return err
	}
	for key := range sweptKeys {
		name, err := domain.ParseObjectName(c.bucket, fmt.Sprint("key-", key))
		if err != nil {
			return err
		}
		want, err := c.oracle.Object(ctx, name)
		if err != nil && domain.KindOf(err) != domain.NotFound {
			return err
		}
		var rows, got []string
		for i := range want.Rows {
			rows = append(rows, want.Rows[i].Type.String()+" "+want.Rows[i].SequencerText())
		}
		current := ""
		if want.Current != nil {
			current = want.Current.SequencerText()
		}
		o := stored[name.Key()]
		for row := range o.Duplicates {
			got = append(got, row)
		}
		slices.Sort(rows)
		slices.Sort(got)
		if !slices.Equal(got, rows) || o.Current != current {
			return fmt.Errorf("L7: object %s has the rows %v and the current row %q, want %v and %q", name.Key(), got, o.Current, rows, current)
		}
	}
	return nil
}
