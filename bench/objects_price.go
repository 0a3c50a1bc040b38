package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/limit"
	"github.com/messagehub/messagehub/bench/objectclient"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// objectBatch is the number of events in a call for the measurement of a batch. All these events
// are of one shard.
const objectBatch = 32

// objectPricing stores events of objects through the store of a hub, without the rest of the hub.
// The request units do not depend on time, so the account has no physics.
type objectPricing struct {
	account *account.Account
	line    *account.Line // the line of the store
	store   *objectstore.Store
	source  *objectSource

	hub      *limit.Objects // reads the hub's documents over an unmetered line
	bare     *limit.Objects
	bareLine *account.Line
}

// priceObjects calls measure with a new account, in which each bucket has the given number of
// shards. If standard is true, the account charges by the standard profile.
func (b *objectBench) priceObjects(ctx context.Context, standard bool, shards int, measure func(*objectPricing) error) (err error) {
	a, err := account.Open(ctx, account.Options{Standard: standard})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	p := &objectPricing{account: a, line: a.Line(), bareLine: a.Line(), source: newObjectSource(b.Seed)}
	db, err := client.Connect(a.Connection(p.line, "hub"))
	if err != nil {
		return err
	}
	defer db.Close()
	p.store = objectstore.New(db, objectstore.Options{Shards: shards})
	if _, err := p.store.Provision(ctx, client.ProvisionOptions{}); err != nil {
		return err
	}
	unmetered, err := a.Client(a.Unmetered())
	if err != nil {
		return err
	}
	defer unmetered.Close()
	if p.hub, err = limit.NewObjects(unmetered, "hub"); err != nil {
		return err
	}
	bare, err := a.Client(p.bareLine)
	if err != nil {
		return err
	}
	defer bare.Close()
	if p.bare, err = limit.NewObjects(bare, "hub"); err != nil {
		return err
	}
	// The first event of a bucket determines its number of shards, and the second event reads that
	// number. The cost of these two events is not measured.
	if _, _, err := p.measurePrice(ctx, 1, []objectclient.Event{p.source.createdEvent(), p.source.createdEvent()}); err != nil {
		return err
	}
	return measure(p)
}

// measurePrices measures the request units of an event, and the floor: the request units that the
// same documents cost with only the requests that the protocol needs.
func (b *objectBench) measurePrices(ctx context.Context) error {
	for _, standard := range []bool{false, true} {
		err := b.priceObjects(ctx, standard, 1, func(p *objectPricing) error { return b.pricesOf(ctx, p, standard) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *objectBench) pricesOf(ctx context.Context, p *objectPricing, standard bool) error {
	for _, load := range []struct {
		batch           int
		limits          [3]float64
		create, replace string // names of the minimum requests, for the report
	}{
		{1, [3]float64{11, 16, 16}, "a read and a creation", "a read and a replacement"},
		{objectBatch, [3]float64{8.5, 12.5, 12.5}, "a query and a batch of creations", "a query and a batch of replacements"},
	} {
		n := load.batch * pickSize(b.scenarioRun, 20, 5)
		created, changed := make([]objectclient.Event, n), make([]objectclient.Event, n)
		for i := range n {
			created[i] = p.source.createdEvent()
		}
		for i := range n {
			changed[i] = p.source.changedObject(len(p.source.known) - n + i)
		}
		for i, kind := range []struct {
			name, floor string
			events      []objectclient.Event
		}{
			{"new object", load.create, created},
			{"known object", load.replace, changed},
			{"duplicate", load.replace, changed},
		} {
			price, floor, err := p.measurePrice(ctx, load.batch, kind.events)
			if err != nil {
				return err
			}
			b.reportPrice(fmt.Sprintf("%s, %d at a time", kind.name, load.batch), standard, price, load.limits[i], floor, kind.floor)
		}
	}
	price, floor, err := p.measureHotPrice(ctx, pickSize(b.scenarioRun, 400, 100))
	if err != nil {
		return err
	}
	b.reportPrice("hot object, 1 at a time", standard, price, 26, floor, "a read, a replacement, and a creation for each spilled row")
	return nil
}

// reportPrice reports the request units of an event, and the request units of the bare requests for
// the same documents.
func (b *objectBench) reportPrice(name string, standard bool, price, atMost, floor float64, why string) {
	name += ", " + profileName(standard)
	b.scenarioRun.reportFigure("hub", name, price, figure.PerEvent, figure.AtMost(atMost))
	b.scenarioRun.reportFigure("limit", name+": "+why, floor, figure.PerEvent, nil)
}

// measurePrice stores events, up to batch in a call, and returns the request units per event, and
// the request units of bare requests for the same documents. The events of a call are of different
// objects.
func (p *objectPricing) measurePrice(ctx context.Context, batch int, events []objectclient.Event) (price, floor float64, err error) {
	before, bareBefore := p.line.Count(), p.bareLine.Count()
	for call := range slices.Chunk(events, batch) {
		if err := p.storeEvents(ctx, call); err != nil {
			return 0, 0, err
		}
		stored, err := p.readDocuments(ctx, call)
		if err == nil {
			err = p.bare.Store(ctx, stored)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	n := float64(len(events))
	return p.line.Count().Since(before).Units / n, p.bareLine.Count().Since(bareBefore).Units / n, nil
}

// measureHotPrice stores n events of one object, one after another, and returns the request units
// per event, with the hub and with bare requests. The hub moves older rows of the object to
// separate documents, so the bare requests create those documents too.
func (p *objectPricing) measureHotPrice(ctx context.Context, n int) (price, floor float64, err error) {
	events := make([]objectclient.Event, n)
	for i := range events {
		events[i] = p.source.changedObject(0)
	}
	price, floor, err = p.measurePrice(ctx, 1, events)
	if err != nil {
		return 0, 0, err
	}
	before := p.bareLine.Count()
	spilled, err := p.hub.ReadHub(ctx, "row")
	if err == nil {
		err = p.bare.Create(ctx, spilled)
	}
	return price, floor + p.bareLine.Count().Since(before).Units/float64(n), err
}

// storeEvents stores the events of one call.
func (p *objectPricing) storeEvents(ctx context.Context, events []objectclient.Event) error {
	reports := make([]repository.ObjectReport, len(events))
	for i, e := range events {
		var err error
		if reports[i], err = objectReport(e); err != nil {
			return err
		}
	}
	results, err := p.store.Ingest(ctx, reports)
	for i := range results {
		err = errors.Join(err, results[i].Err)
	}
	return err
}

// readDocuments reads the hub's document of each object in events. It fails unless it finds one
// document for each event.
func (p *objectPricing) readDocuments(ctx context.Context, events []objectclient.Event) ([]json.RawMessage, error) {
	all, err := p.hub.ReadHub(ctx, "object")
	if err != nil {
		return nil, err
	}
	documents := slices.DeleteFunc(all, func(text json.RawMessage) bool {
		var d struct{ Key string }
		err = errors.Join(err, json.Unmarshal(text, &d))
		return !slices.ContainsFunc(events, func(e objectclient.Event) bool { return e.Key == d.Key })
	})
	if err == nil && len(documents) != len(events) {
		err = fmt.Errorf("the hub has %d documents of %d objects", len(documents), len(events))
	}
	return documents, err
}

// objectReport converts e to the report that the hub parses from an S3 notification.
func objectReport(e objectclient.Event) (report repository.ObjectReport, err error) {
	if report.Name, err = domain.ParseObjectName(objectBucket, e.Key); err != nil {
		return report, err
	}
	report.Type, report.Reason = domain.ObjectDeleted, domain.DeletedByRequest
	report.Time = objectclient.Began.Add(time.Duration(e.Sequencer) * time.Millisecond)
	report.Sequencer, err = domain.ParseSequencer(domain.HexSequencer, fmt.Sprintf("%018X", e.Sequencer))
	if !e.Deleted {
		size := 1_000 + e.Sequencer
		report.Type = domain.ObjectCreated
		report.ObjectFacts = domain.ObjectFacts{Size: &size, ETag: domain.QuoteETag(fmt.Sprintf("%032x", e.Sequencer)), Reason: domain.CreatedPut}
	}
	return report, err
}

// measureCrawls measures a crawl in which all objects are unchanged.
func (b *objectBench) measureCrawls(ctx context.Context) error {
	n := pickSize(b.scenarioRun, 20_000, 2_000)
	source := memory.NewSource(objectBucket)
	for i := range n {
		size := int64(1_000 + i)
		source.Put(objectBucket, repository.SourceObject{Key: objectKey(i), ObjectFacts: domain.ObjectFacts{
			Size: &size, ETag: domain.QuoteETag(fmt.Sprintf("%032x", i)), StorageClass: domain.ClassStandard, LastModified: objectclient.Began,
		}})
	}
	for _, standard := range []bool{false, true} {
		err := b.priceObjects(ctx, standard, 0, func(p *objectPricing) error {
			found := &foundObjects{Store: p.store}
			if _, err := crawlObjects(ctx, found, p.store, source); err != nil { // this crawl stores the objects
				return err
			}
			before, stored := p.line.Count(), found.reports
			seen, err := crawlObjects(ctx, found, p.store, source)
			if err != nil {
				return err
			}
			if seen != int64(n) {
				return fmt.Errorf("a crawl of %d objects has seen %d", n, seen)
			}
			name := fmt.Sprintf("crawl of %d unchanged objects, %s", n, profileName(standard))
			target := figure.AtMost(0.15)
			if !standard {
				target = nil // this profile charges each object that is read as a separate read
			}
			b.scenarioRun.reportFigure("hub", name, p.line.Count().Since(before).Units/float64(n), "RU/object", target)
			b.scenarioRun.reportFigure("hub", name+", events stored", float64(found.reports-stored), "events", figure.AtMost(0))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A foundObjects is a store that counts the stored events.
type foundObjects struct {
	*objectstore.Store
	reports int
}

// Ingest implements [repository.Objects]. A crawl calls it sequentially.
func (f *foundObjects) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	f.reports += len(reports)
	return f.Store.Ingest(ctx, reports)
}

// crawlObjects crawls the bucket, and returns the number of objects that its source
// has listed.
func crawlObjects(ctx context.Context, objects repository.Objects, jobs repository.Jobs, source repository.Source) (seen int64, err error) {
	s := ledger.New(ledger.Ports{Objects: objects, Jobs: jobs, Source: source}, ledger.Options{})
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { s.RunJobs(ctx) })
	job, err := s.StartCrawl(ctx, objectBucket, "")
	if err == nil {
		job, err = s.WaitForJob(ctx, job)
	}
	if err == nil && job.State != domain.JobCompleted {
		err = fmt.Errorf("the crawl is %s: %s", job.State, job.Report)
	}
	return job.Counts.Seen, err
}
