package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/random"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
)

// verifyObjects compares the stored objects with the bucket, and the counts with the responses to deliveries. The
// stored state must equal the bucket if all events were reported and no clock was wrong by more than the margin. If
// some events were not reported, the stored state must equal the bucket after a crawl.
func (sim *objectSimulation) verifyObjects() error {
	sim.stopNodes(2 * maxObjectSkew)
	db, err := sim.connectCosmos()
	if err != nil {
		return err
	}
	defer db.Close()
	options := sim.storeOptions
	options.Clock, options.Random = sim.clock.nextTime, random.New(sim.options.Seed, objectPurposes+700).Uint64
	store := objectstore.New(db, options)
	node := sim.newLedgerService(store, sim.source, options)
	ctx, cancel := context.WithCancel(sim.ctx)
	defer cancel()
	sim.background.Go(func() { node.RunJobs(ctx) })

	if err := sim.endCrawl(ctx, node); err != nil {
		return fmt.Errorf("the running crawl: %w", err)
	}
	isRight := !sim.hasJumped && (!sim.plan.loses || sim.plan.crawlsOnce())
	if isRight {
		if err := sim.verifyStates(store); err != nil {
			return err
		}
		if sim.plan.crawls && sim.hasSkew {
			sim.MarkReached("a clock that was wrong by less than the margin did no harm to crawls")
		}
	}
	if err := sim.crawlLast(ctx, node, isRight); err != nil {
		return fmt.Errorf("the last crawl: %w", err)
	}
	if err := sim.verifyStates(store); err != nil {
		return fmt.Errorf("after the last crawl: %w", err)
	}
	for _, o := range sim.buckets {
		if err := sim.verifyObject(store, o); err != nil {
			return fmt.Errorf("%s: %w", o.name.Key(), err)
		}
	}
	return sim.checkObjects(store)
}

// endCrawl completes the running crawl, if any, on a node.
func (sim *objectSimulation) endCrawl(ctx context.Context, node *ledger.Service) error {
	jobs, err := node.ListJobs(ctx, domain.JobID{Kind: domain.CrawlJob}, 1000)
	for i := 0; i < len(jobs) && err == nil; i++ {
		if jobs[i].State == domain.JobRunning {
			_, err = node.WaitForJob(ctx, jobs[i])
			sim.MarkReached("a crawl was completed after the death of its node")
		}
	}
	return err
}

// crawlLast crawls the bucket once more. If isRight is true, it returns an error if the crawl finds a difference.
func (sim *objectSimulation) crawlLast(ctx context.Context, node *ledger.Service, isRight bool) error {
	job, err := node.StartCrawl(ctx, objectBucket, "")
	if err == nil {
		job, err = node.WaitForJob(ctx, job)
	}
	switch found := job.Counts.Created + job.Counts.Deleted; {
	case err != nil:
		return err
	case job.State != domain.JobCompleted && ctx.Err() == nil:
		return fmt.Errorf("it ended as %s: %s", job.State, job.Report)
	case found > 0 && isRight:
		return fmt.Errorf("it found %d differences", found)
	case found > 0 && sim.plan.loses:
		sim.MarkReached("a crawl found what was never reported")
	}
	return nil
}

// verifyStates compares the current state of each object, and the list of all objects, with the bucket.
func (sim *objectSimulation) verifyStates(store *objectstore.Store) error {
	var want []string
	for _, o := range sim.buckets {
		eTag := o.bucket.Current()
		if eTag != "" {
			want = append(want, o.name.Key())
			eTag = domain.QuoteETag(eTag)
		}
		object, err := store.Object(sim.ctx, o.name)
		if err != nil && domain.KindOf(err) != domain.NotFound {
			return err
		}
		current := ""
		if object.Current != nil {
			current = object.Current.ETag
		}
		if current != eTag {
			return fmt.Errorf("L3: the current state of %s is %q, but the bucket has %q", o.name.Key(), current, eTag)
		}
	}
	page, err := store.List(sim.ctx, repository.ObjectRange{Bucket: objectBucket, OnlyCurrent: true}, 10)
	if err != nil {
		return err
	}
	var got []string
	for i := range page.Objects {
		got = append(got, page.Objects[i].Name.Key())
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("L3: the list of current objects has %s, but the bucket has %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

// checkObjects checks the stored objects, and returns an error if the check has any finding.
func (sim *objectSimulation) checkObjects(store *objectstore.Store) error {
	report, err := store.Check(sim.ctx, objectstore.CheckOptions{})
	if err != nil {
		return err
	}
	if report.Found > 0 {
		return fmt.Errorf("a check found: %s", report.Findings[0].String())
	}
	return nil
}

// verifyObject compares the rows of an object, and their counts, with the deliveries.
func (sim *objectSimulation) verifyObject(store *objectstore.Store, o *observedObject) error {
	object, err := store.Object(sim.ctx, o.name)
	var rows []domain.ObjectRow
	switch {
	case domain.KindOf(err) == domain.NotFound: // the object has no reported events, or was forgotten
	case err != nil:
		return err
	default:
		if rows, err = store.History(sim.ctx, o.name, domain.ObjectOrder{}, int(object.Events)+1); err != nil {
			return err
		}
	}
	if object.Events != int64(len(rows)) {
		return fmt.Errorf("L1: it counts %d events, but has %d rows", object.Events, len(rows))
	}
	sim.omu.Lock()
	defer sim.omu.Unlock()
	reported := 0
	for i := range rows {
		if strings.HasPrefix(rows[i].Carrier.Message, "crawl/") {
			continue
		}
		reported++
		if err := sim.verifyTally(&rows[i], o.events[rows[i].ID()]); err != nil {
			return err
		}
	}
	want := 0
	for _, t := range o.events {
		if !t.isLost {
			want++
		}
	}
	if reported != want && sim.plan.retention == 0 || reported > want {
		return fmt.Errorf("L1: %d of its events were stored, but %d have rows", want, reported)
	}
	return nil
}

// verifyTally compares the stored count of an event with the responses to its deliveries.
func (sim *objectSimulation) verifyTally(r *domain.ObjectRow, t *eventTally) error {
	if t == nil || t.isLost {
		return fmt.Errorf("L1: no message had event %+v", r.ID())
	}
	least := t.stored + t.known
	if n := int(r.Duplicates) + 1; n < least || n > least+t.unsure+t.repeats {
		return fmt.Errorf("L5: event %+v was counted %d times; of its deliveries %d were answered, %d may have been stored, %d repeated", r.ID(), n, least, t.unsure, t.repeats)
	}
	if t.stored > 1 || t.stored == 0 && t.unsure == 0 {
		return fmt.Errorf("L1: event %+v was reported as stored in %d answers; %d unanswered deliveries may have been stored", r.ID(), t.stored, t.unsure)
	}
	if t.unsure == 0 && least > 1 {
		sim.MarkReached("the duplicates of an event were counted exactly")
	}
	return nil
}
