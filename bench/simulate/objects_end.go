package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// judgeObjects compares what is stored in the end with the bucket, and the counts with what was answered.
// Where events were lost, or crawls had wrong clocks, that is so after a last crawl.
func (l *objectWorld) judgeObjects() error {
	l.rest(2 * maxObjectSkew)
	db, err := l.connect()
	if err != nil {
		return err
	}
	defer db.Close()
	options := l.options
	options.Clock = l.clock.now
	options.Random = newDice(l.o.Seed, objectUses+700).next
	store := objectstore.New(db, options)
	if !l.plan.crawls {
		if err := l.judgeStates(store); err != nil {
			return err
		}
	}
	found, err := l.crawlLast(store, options)
	if err != nil {
		return fmt.Errorf("the last crawl: %w", err)
	}
	if n := found.Created + found.Deleted; n > 0 && !l.plan.crawls && l.plan.retention == 0 {
		return fmt.Errorf("all events were delivered, and a crawl has found %d differences", n)
	} else if n > 0 && l.plan.loses {
		l.reached("a crawl found what was never reported")
	}
	if err := l.judgeStates(store); err != nil {
		return err
	}
	for _, o := range l.buckets {
		if err := l.judgeObject(store, o); err != nil {
			return fmt.Errorf("%s: %w", o.name.Key(), err)
		}
	}
	return l.checkObjects(store)
}

// crawlLast completes the crawl that runs, if one does, and then does another one, of which it returns
// the counts.
func (l *objectWorld) crawlLast(store *objectstore.Store, options objectstore.Options) (domain.JobCounts, error) {
	node := l.newLedger(store, l.source, options)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	l.ghosts.Go(func() { node.RunJobs(ctx) })
	for {
		job, err := node.StartCrawl(ctx, objectBucket, "")
		other, runs := errors.AsType[*repository.JobRunsError](err)
		if err != nil && !runs {
			return job.Counts, err
		}
		if runs {
			job = domain.Job{ID: other.ID, State: domain.JobRunning}
		}
		if job, err = node.WaitForJob(ctx, job); err != nil {
			return job.Counts, err
		}
		switch {
		case ctx.Err() != nil:
			return job.Counts, ctx.Err()
		case !runs && job.State != domain.JobCompleted:
			return job.Counts, fmt.Errorf("it is %s: %s", job.State, job.Report)
		case !runs:
			return job.Counts, nil
		}
	}
}

// judgeStates compares the current state of each object, and the list of them, with the bucket.
func (l *objectWorld) judgeStates(store *objectstore.Store) error {
	var want []string
	for _, o := range l.buckets {
		eTag := o.bucket.Current()
		if eTag != "" {
			want = append(want, o.name.Key())
			eTag = domain.QuoteETag(eTag)
		}
		object, err := store.Object(l.ctx, o.name)
		if err != nil && domain.KindOf(err) != domain.NotFound {
			return err
		}
		current := ""
		if object.Current != nil {
			current = object.Current.ETag
		}
		if current != eTag {
			return fmt.Errorf("L3: the current state of %s is %q, and that of the bucket is %q", o.name.Key(), current, eTag)
		}
	}
	page, err := store.List(l.ctx, repository.ObjectRange{Bucket: objectBucket, OnlyCurrent: true}, 10)
	if err != nil {
		return err
	}
	var got []string
	for i := range page.Objects {
		got = append(got, page.Objects[i].Name.Key())
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("L3: the list of current objects has %s, and the bucket %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

// checkObjects demands that a check finds nothing.
func (l *objectWorld) checkObjects(store *objectstore.Store) error {
	report, err := store.Check(l.ctx, objectstore.CheckOptions{})
	if err != nil {
		return err
	}
	if report.Found > 0 {
		return fmt.Errorf("a check finds: %s", report.Findings[0].String())
	}
	return nil
}

// judgeObject compares the rows of an object, and how often they were counted, with what was delivered.
func (l *objectWorld) judgeObject(store *objectstore.Store, o *observedObject) error {
	object, err := store.Object(l.ctx, o.name)
	var rows []domain.ObjectRow
	switch {
	case domain.KindOf(err) == domain.NotFound: // nothing was reported of it, or it is forgotten
	case err != nil:
		return err
	default:
		if rows, err = store.History(l.ctx, o.name, domain.ObjectOrder{}, int(object.Events)+1); err != nil {
			return err
		}
	}
	if object.Events != int64(len(rows)) {
		return fmt.Errorf("L1: it counts %d events, and has %d rows", object.Events, len(rows))
	}
	l.omu.Lock()
	defer l.omu.Unlock()
	reported := 0
	for i := range rows {
		if strings.HasPrefix(rows[i].Carrier.Message, "crawl/") {
			continue
		}
		reported++
		if err := l.judgeTally(&rows[i], o.events[rows[i].ID()]); err != nil {
			return err
		}
	}
	want := 0
	for _, t := range o.events {
		if !t.isLost {
			want++
		}
	}
	if reported != want && l.plan.retention == 0 || reported > want {
		return fmt.Errorf("L1: %d of its events were delivered, and %d have rows", want, reported)
	}
	return nil
}

// judgeTally compares how often an event was counted with the answers to its deliveries.
func (l *objectWorld) judgeTally(r *domain.ObjectRow, t *eventTally) error {
	if t == nil || t.isLost {
		return fmt.Errorf("L1: no message had event %+v", r.ID())
	}
	least := t.stored + t.known
	if n := int(r.Duplicates) + 1; n < least || n > least+t.unsure+t.repeats {
		return fmt.Errorf("L5: event %+v was counted %d times; of its deliveries %d were answered, %d may have been stored, %d repeated", r.ID(), n, least, t.unsure, t.repeats)
	}
	if t.stored > 1 || t.stored == 0 && t.unsure == 0 {
		return fmt.Errorf("L1: event %+v was answered %d times to be stored, %d deliveries may have been", r.ID(), t.stored, t.unsure)
	}
	if t.unsure == 0 && least > 1 {
		l.reached("the duplicates of an event were counted exactly")
	}
	return nil
}
