//go:build unix

package crashpoint

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
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	engine "github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// objectRows is the limit for the rows in an object: so few that rows are spilled all the time.
const objectRows = 4

// A sentEvent is an event of an object as it is sent to a node: in the form of a script of package
// objecttest.
type sentEvent struct {
	Key   string `json:"key"`
	Event string `json:"event"`
}

// A storedObject is an object as a node has stored it.
type storedObject struct {
	Current    string           `json:"current"`    // the text of its sequencer
	Duplicates map[string]int64 `json:"duplicates"` // by the text of each row
}

// beObjectNode is the whole life of a process that stores the events of objects in an engine of its own,
// and does nothing else.
func beObjectNode(ctx context.Context, o *orders, listener net.Listener) (err error) {
	own, err := engine.Open(engine.Options{Dir: filepath.Join(o.Data, "objects")}) //nolint:contextcheck // opening a folder cannot be cancelled
	if err != nil {
		return err
	}
	f := &fuse{step: o.Step, when: o.When, die: killed}
	f.left.Store(o.Nth)
	db, err := client.Connect(client.Connection{Endpoint: own.Endpoint(), Key: own.Key(), Transport: &transport{own.Transport(), f}})
	if err == nil {
		defer db.Close()
		err = db.Provision(ctx, objects.Containers())
	}
	if err != nil {
		return errors.Join(err, own.Close())
	}
	d := &objectDoor{objects.New(db, objects.Options{Shards: 1, Limits: domain.ObjectLimits{Rows: objectRows}})}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /{bucket}", d.ingest)
	routes.HandleFunc("GET /{bucket}", d.list)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the process that has started it is gone
	}()
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.WithoutCancel(ctx)) // the process ends
	}()
	fmt.Println(firstWords)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, own.Close())
	}
	return own.Close()
}

// An objectDoor gives a store of objects to callers of HTTP.
type objectDoor struct{ store *objects.Store }

// ingest stores the events of one message, and answers 503 unless all are stored.
func (d *objectDoor) ingest(w http.ResponseWriter, req *http.Request) {
	var sent []sentEvent
	if err := json.NewDecoder(req.Body).Decode(&sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var reports []repository.ObjectReport
	for _, s := range sent {
		name, err := domain.ParseObjectName(req.PathValue("bucket"), s.Key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reports = append(reports, repository.ObjectReport{Name: name, ObjectEvent: objecttest.Calls("[" + s.Event + "]")[0][0]})
	}
	results, err := d.store.Ingest(req.Context(), reports)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// list answers with all objects of a bucket, by their keys.
func (d *objectDoor) list(w http.ResponseWriter, req *http.Request) {
	const limit = 1000
	all := make(map[string]storedObject)
	page, err := d.store.List(req.Context(), repository.ObjectRange{Bucket: req.PathValue("bucket")}, limit)
	for i := range page.Objects {
		o := &page.Objects[i]
		rows, failure := d.store.History(req.Context(), o.Name, domain.ObjectOrder{}, limit)
		err = errors.Join(err, failure)
		s := storedObject{Duplicates: make(map[string]int64)}
		if o.Current != nil {
			s.Current = o.Current.SequencerText()
		}
		for k := range rows {
			s.Duplicates[rows[k].Type.String()+" "+rows[k].SequencerText()] = rows[k].Duplicates
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
	_ = json.NewEncoder(w).Encode(all) // a client that has gone needs no answer
}
