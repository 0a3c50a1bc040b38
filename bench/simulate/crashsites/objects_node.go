//go:build unix

package crashsites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/api/jsonpatch"
	"github.com/messagehub/messagehub/cosmos/client"
	engine "github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
)

// objectRows is the limit for the rows in the document of an object: small, so that rows are spilled often.
const objectRows = 4

// An objectEvent is an event of an object in the form that a client sends, in the notation of package objecttest.
type objectEvent struct {
	Key   string `json:"key"`
	Event string `json:"event"`
}

// A storedObject is a stored object in the form that a node returns.
type storedObject struct {
	Current    string            `json:"current"`    // text of the sequencer of the current row
	Duplicates map[string]int64  `json:"duplicates"` // number of duplicates, by the text of the row
	Attributes map[string]string `json:"attributes"` // attributes as JSON, by the text of the row; rows without attributes are missing
}

// runObjectNodeProcess runs a child process as a node that stores objects in an embedded engine.
func runObjectNodeProcess(ctx context.Context, o *nodeOrders, listener net.Listener) (err error) {
	own, err := engine.Open(engine.Options{Dir: filepath.Join(o.Data, "objects")}) //nolint:contextcheck // opening a folder cannot be cancelled
	if err != nil {
		return err
	}
	f := &killSwitch{step: o.Step, when: o.When, die: killSelf}
	f.left.Store(o.Nth)
	db, err := client.Connect(client.Connection{Endpoint: own.Endpoint(), Key: own.Key(), Transport: &killingTransport{own.Transport(), f}})
	if err == nil {
		defer db.Close()
		err = db.Provision(ctx, slices.Concat(objects.Containers(), push.Containers()))
	}
	if err != nil {
		return errors.Join(err, own.Close())
	}
	d := newObjectServer(db, o)
	server := &http.Server{Handler: d.newRoutes(), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent process has ended
	}()
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.WithoutCancel(ctx)) // the process exits after this call, so the error does not matter
	}()
	var jobs sync.WaitGroup
	if o.Objects == crawling || o.Objects == patching {
		jobs.Go(func() { d.service.RunJobs(ctx) })
	}
	if d.relay != nil {
		jobs.Go(func() { d.relay.Run(ctx) })
	}
	fmt.Println(firstWords)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, own.Close())
	}
	jobs.Wait()
	return own.Close()
}

// An objectServer serves an object store over HTTP.
type objectServer struct {
	store   *objects.Store
	service *ledger.Service
	sweeper *ledger.Sweeper
	ahead   time.Duration
	now     atomic.Int64 // time of the clock in Unix seconds; 0 until a request sets it

	// relay and streams are nil unless changes are published to the topic.
	relay   *publish.ObjectRelay
	streams *push.Store
}

func newObjectServer(db *client.Database, o *nodeOrders) *objectServer {
	d := &objectServer{ahead: o.Ahead}
	options := objects.Options{Shards: 1, Limits: domain.ObjectLimits{Rows: objectRows}, Clock: d.clockNow}
	if o.Objects == forgetting {
		options.Retention = objectRetention
	}
	options.Topic = o.Objects == relaying
	d.store = objects.New(db, options)
	if options.Topic {
		d.startTopic(db)
	}
	useCases := ledger.Options{Clock: d.clockNow, JSONPatch: jsonpatch.Apply, CrawlPage: crawledPage}
	d.service = ledger.New(ledger.Ports{Objects: d.store, Jobs: d.store, Source: crawledSource()}, useCases)
	d.sweeper = ledger.NewSweeper(d.store, func(repository.ObjectShard, repository.ShardUsage) {}, useCases)
	return d
}

func (d *objectServer) clockNow() time.Time {
	if now := d.now.Load(); now > 0 {
		return time.Unix(now, 0)
	}
	return time.Now().Add(d.ahead)
}

func (d *objectServer) newRoutes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("POST /{bucket}", d.handleIngest)
	routes.HandleFunc("GET /{bucket}", d.handleList)
	routes.HandleFunc("GET /{bucket}/topic", d.handleTopic)
	routes.HandleFunc("PATCH /{bucket}/{key}", d.handlePatch)
	routes.HandleFunc("POST /{bucket}/crawls", d.handleCrawl)
	routes.HandleFunc("POST /{bucket}/patches", d.handlePatchJob)
	routes.HandleFunc("GET /jobs/{kind}/{id}", d.handleJob)
	routes.HandleFunc("POST /sweeps", d.handleSweep)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if now, err := strconv.ParseInt(req.URL.Query().Get("now"), 10, 64); err == nil {
			d.now.Store(now)
		}
		routes.ServeHTTP(w, req)
	})
}

// writeError answers with an error. Its status is 503 if the caller may repeat the request.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	switch domain.KindOf(err) {
	case domain.Invalid:
		status = http.StatusBadRequest
	case domain.NotFound:
		status = http.StatusNotFound
	case domain.Damaged, domain.Unknown:
		status = http.StatusInternalServerError
	default:
	}
	http.Error(w, err.Error(), status)
}

// handleIngest stores the events of one message, and answers 503 unless all events are stored.
func (d *objectServer) handleIngest(w http.ResponseWriter, req *http.Request) {
	var sent []objectEvent
	if err := json.NewDecoder(req.Body).Decode(&sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var reports []repository.ObjectReport
	for _, s := range sent {
		name, err := domain.ParseObjectName(req.PathValue("bucket"), s.Key)
		if err != nil {
			writeError(w, err)
			return
		}
		reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: parseSent(s.Event)})
	}
	results, err := d.store.Ingest(req.Context(), reports)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func parseSent(event string) domain.ObjectEvent { return objecttest.Calls("[" + event + "]")[0][0] }

// handlePatch applies a JSON Patch to the attributes of the row that the query names, or of the current row.
func (d *objectServer) handlePatch(w http.ResponseWriter, req *http.Request) {
	name, err := domain.ParseObjectName(req.PathValue("bucket"), req.PathValue("key"))
	if err != nil {
		writeError(w, err)
		return
	}
	id := ledger.RowID{Name: name}
	if row := req.URL.Query().Get("row"); row != "" {
		e := parseSent(row)
		id.Row = e.ID()
	}
	text, err := io.ReadAll(req.Body)
	var patch ledger.Patch
	if err == nil {
		patch, err = ledger.ParsePatch(text)
	}
	if err == nil {
		_, err = d.service.Amend(req.Context(), id, patch)
	}
	if err != nil {
		writeError(w, err)
	}
}

// A startedJob is a job in the form that a node returns.
type startedJob struct {
	Kind   domain.JobKind   `json:"kind"`
	ID     string           `json:"id"`
	State  domain.JobState  `json:"state"`
	Report string           `json:"report"`
	Counts domain.JobCounts `json:"counts"`
}

func answerJob(w http.ResponseWriter, job *domain.Job, err error) {
	if err != nil {
		writeError(w, err)
		return
	}
	_ = json.NewEncoder(w).Encode(startedJob{job.ID.Kind, job.ID.UUID(), job.State, job.Report, job.Counts}) // an error means that the client has disconnected
}

// handleCrawl starts a crawl of a bucket, or returns the crawl that is already running.
func (d *objectServer) handleCrawl(w http.ResponseWriter, req *http.Request) {
	job, err := d.service.StartCrawl(req.Context(), req.PathValue("bucket"), "")
	if runs, is := errors.AsType[*repository.JobRunsError](err); is {
		job, err = d.service.Job(req.Context(), runs.ID)
	}
	answerJob(w, &job, err)
}

// handlePatchJob starts a job that patches all rows of a bucket.
func (d *objectServer) handlePatchJob(w http.ResponseWriter, req *http.Request) {
	patch, err := io.ReadAll(req.Body)
	var job domain.Job
	if err == nil {
		query := map[string][]string{"bucket": {req.PathValue("bucket")}, "key": {"*"}, "currentState": {"false"}}
		job, err = d.service.StartPatch(req.Context(), query, patch)
	}
	answerJob(w, &job, err)
}

func (d *objectServer) handleJob(w http.ResponseWriter, req *http.Request) {
	id, err := domain.ParseJobID(domain.JobKind(req.PathValue("kind")), req.PathValue("id"))
	var job domain.Job
	if err == nil {
		job, err = d.service.Job(req.Context(), id)
	}
	answerJob(w, &job, err)
}

// handleSweep sweeps all shards, if a sweep is due.
func (d *objectServer) handleSweep(w http.ResponseWriter, req *http.Request) {
	if err := d.sweeper.Sweep(req.Context()); err != nil {
		writeError(w, err)
	}
}

// handleList returns all objects of a bucket, by key.
func (d *objectServer) handleList(w http.ResponseWriter, req *http.Request) {
	const limit = 1000
	all := make(map[string]storedObject)
	page, err := d.store.List(req.Context(), repository.ObjectRange{Bucket: req.PathValue("bucket")}, limit)
	for i := range page.Objects {
		o := &page.Objects[i]
		rows, failure := d.store.History(req.Context(), o.Name, domain.ObjectOrder{}, limit)
		err = errors.Join(err, failure)
		s := storedObject{Duplicates: make(map[string]int64), Attributes: make(map[string]string)}
		if o.Current != nil {
			s.Current = o.Current.SequencerText()
		}
		for k := range rows {
			text := rows[k].Type.String() + " " + rows[k].SequencerText()
			s.Duplicates[text] = rows[k].Duplicates
			if rows[k].Attributes != "" {
				s.Attributes[text] = rows[k].Attributes
			}
		}
		if len(s.Duplicates) != len(rows) || o.Events != int64(len(rows)) {
			err = errors.Join(err, fmt.Errorf("%s has %d rows, %d of them different, and counts %d", o.Name.Key(), len(rows), len(s.Duplicates), o.Events))
		}
		all[o.Name.Key()] = s
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(all) // an error means that the client has disconnected
}
