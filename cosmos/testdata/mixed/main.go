// Command mixed saves, peeks and dequeues a number of times, and then reports the results in JSON. A
// test builds it with different versions of package cosmos and runs the builds concurrently.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A Report is the result of a worker.
type Report struct {
	Saved    []string         `json:"saved"`    // ids of saved events
	Dequeued []string         `json:"dequeued"` // ids of dequeued events
	Errors   []string         `json:"errors"`
	Refused  map[string]int   `json:"refused"` // numbers of errors by kind
	Writes   map[string]int   `json:"writes"`  // highest written counters by container, partition and document id
	Counters map[string]int64 `json:"counters"`
}

// A worker makes the calls of a node for some actors.
type worker struct {
	repo   *cosmos.Repository
	stores repositorytest.Stores
	actors []domain.ActorID

	mu     sync.Mutex
	report Report
}

func main() {
	endpoint := flag.String("endpoint", "", "of the account")
	key := flag.String("key", "", "of the account")
	actors := flag.String("actors", "", "ids, with commas between them")
	saves := flag.Int("saves", 100, "how often each of two goroutines saves")
	tails := flag.Int("tails", 0, "how many events of a cabinet stay in the head")
	flag.Parse()
	w := &worker{report: Report{Refused: map[string]int{}, Writes: map[string]int{}, Counters: map[string]int64{}}}
	for _, text := range strings.Split(*actors, ",") {
		actor, err := domain.ParseActorID(text)
		exitOn(err)
		w.actors = append(w.actors, actor)
	}
	db, err := client.Connect(client.Connection{Endpoint: *endpoint, Key: *key, Transport: w})
	exitOn(err)
	defer db.Close()
	w.repo = cosmos.New(db, memory.NewContent(), cosmos.Options{DrawerCapacity: 20, TailEvents: *tails, SweepEvery: -1})
	w.stores = repositorytest.Stores{Events: w.repo, Bundles: w.repo, Content: memory.NewContent(), Admin: w.repo, Answers: w.repo, Outbox: w.repo}

	ctx, stop := context.WithCancel(context.Background())
	var hints, saving, fetching sync.WaitGroup
	hints.Go(func() { _ = w.repo.Run(ctx) })
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // wait until the test has started the other builds
	saved := make(chan struct{})
	for range 2 {
		saving.Go(func() {
			for range *saves {
				w.reportError(w.saveEvents(ctx, w.randomActor()))
			}
		})
		fetching.Go(func() {
			for {
				w.reportError(w.fetchBundle(ctx, w.randomActor()))
				select {
				case <-saved:
					return
				default:
				}
			}
		})
	}
	saving.Wait()
	close(saved)
	fetching.Wait()
	stop()
	hints.Wait()
	exitOn(json.NewEncoder(os.Stdout).Encode(&w.report))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (w *worker) randomActor() domain.ActorID { return w.actors[rand.IntN(len(w.actors))] }

// reportError reports err, unless it is nil.
func (w *worker) reportError(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind := domain.KindOf(err); kind {
	case domain.Conflict, domain.Busy, domain.NotFound, domain.NewerFormat: // expected: another worker was first, or the mailbox has a newer format
		w.report.Refused[kind.String()]++
	default:
		w.report.Errors = append(w.report.Errors, err.Error())
	}
}

func (w *worker) saveEvents(ctx context.Context, actor domain.ActorID) error {
	events := repositorytest.Events(1+rand.IntN(7), actor)
	saved, err := w.repo.Save(ctx, actor, events)
	if err != nil {
		return err
	}
	if saved.Accepted != len(events) {
		return fmt.Errorf("%d of %d events were accepted", saved.Accepted, len(events))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range events {
		w.report.Saved = append(w.report.Saved, events[i].ID.String())
	}
	return nil
}

func (w *worker) fetchBundle(ctx context.Context, actor domain.ActorID) error {
	b, err := repositorytest.Peek(ctx, w.stores, actor, domain.DefaultGroups().All(), domain.BundleID{})
	if errors.Is(err, domain.ErrNoData) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := w.repo.Acknowledge(ctx, actor, b.ID); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range b.Events {
		w.report.Dequeued = append(w.report.Dequeued, b.Events[i].ID.String())
	}
	return nil
}

// Do implements policy.Transporter. It records the counters in the documents that the request writes.
func (w *worker) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil && req.Header.Get("x-ms-documentdb-query") == "" {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusCreated) {
		var documents any
		if json.Unmarshal(body, &documents) == nil {
			w.countUp(containerOf(req.URL.Path), documents)
		}
	}
	return resp, err
}

func containerOf(path string) string {
	_, after, _ := strings.Cut(path, "/colls/")
	name, _, _ := strings.Cut(after, "/")
	return name
}

func (w *worker) countUp(container string, value any) {
	switch value := value.(type) {
	case []any: // a batch
		for _, operation := range value {
			if operation, ok := operation.(map[string]any); ok {
				w.countUp(container, operation["resourceBody"])
			}
		}
	case map[string]any:
		id, _ := value["id"].(string)
		key, isThere := value["partitionKey"].(string)
		if !isThere {
			key, _ = value["recipient"].(string)
		}
		if id == "" || value["writes"] == nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		name := container + " " + key + " " + id
		w.report.Writes[name]++
		w.noteCounters(name, value)
	}
}

// noteCounters records the highest value of each counter.
func (w *worker) noteCounters(path string, object map[string]any) {
	for name, member := range object {
		switch member := member.(type) {
		case float64:
			if name == "writes" {
				w.report.Counters[path] = max(w.report.Counters[path], int64(member))
			}
		case map[string]any:
			w.noteCounters(path+"/"+name, member)
		}
	}
}
