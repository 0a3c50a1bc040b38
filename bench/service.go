package bench

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
)

// A service is a whole node as it ships, over an account of its own, in this process.
// Actors and domains reach it by HTTP, and it the account.
type service struct {
	url     string
	account *account.Account
	lines   lines
	end     func() error
}

// Throughput of the hub's containers, in request units a second.
type throughput struct{ catalog, cabinet, bundles int32 }

func (t throughput) total() int32 { return t.catalog + t.cabinet + t.bundles }

// serve starts a service. The documents of a modelled account are on disk: so the heap
// of this process is that of the hub and the load, whatever has been stored. around
// may put something between the hub and the account; nil puts nothing.
func (r *run) serve(ctx context.Context, t throughput, around func(policy.Transporter) policy.Transporter) (_ *service, err error) {
	s := new(service)
	var undo []func() error
	s.end = func() error {
		var errs []error
		for len(undo) > 0 {
			errs = append(errs, undo[len(undo)-1]())
			undo = undo[:len(undo)-1]
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	folder, err := os.MkdirTemp("", "messagehub-bench-")
	if err != nil {
		return nil, err
	}
	undo = append(undo, func() error { return os.RemoveAll(folder) })
	if s.account, err = r.accountIn(ctx, filepath.Join(folder, "account")); err != nil {
		return nil, err
	}
	undo = append(undo, s.account.Close)
	database := "messagehub-bench-" + r.scenario
	if err := provision(ctx, s.account, database, t); err != nil {
		return nil, err
	}
	undo = append(undo, func() error { return s.account.Drop(context.WithoutCancel(ctx), database) })
	s.lines = newLines(s.account)
	var transport policy.Transporter = s.lines
	if around != nil {
		transport = around(transport)
	}
	hub, err := node.Open(ctx, settings(s.account, database, filepath.Join(folder, "hub")), node.Options{Transport: transport})
	if err != nil {
		return nil, err
	}
	s.url = hub.URL()
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	var life sync.WaitGroup
	var ended error
	life.Go(func() { ended = hub.Run(living) })
	undo = append(undo, func() error {
		stop()
		life.Wait()
		return ended
	})
	return s, nil
}

// provision makes the containers, unless they are there, and gives them what they are
// to have.
func provision(ctx context.Context, a *account.Account, database string, t throughput) error {
	db, err := cosmos.Connect(a.Connection(a.Unmetered(), database))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Provision(ctx); err != nil {
		return err
	}
	return a.Raise(ctx, database, map[string]int32{"catalog": t.catalog, "cabinet": t.cabinet, "bundles": t.bundles})
}

// settings are those of a node whose documents are in an account, and the rest in a
// folder.
func settings(a *account.Account, database, folder string) config.Config {
	c := config.Default()
	c.Listen, c.BusListen, c.BlobListen, c.Data = "127.0.0.1:0", "", "", folder
	c.Cosmos = config.Cosmos{Endpoint: a.Endpoint(), Key: config.Secret(a.Key()), Database: database, Consistency: a.Consistency()}
	return c
}

// lines are the ways to the account, one for each container of the hub.
type lines struct{ catalog, cabinet, bundles, others *account.Line }

func newLines(a *account.Account) lines { return lines{a.Line(), a.Line(), a.Line(), a.Line()} }

// Do sends a request over the line of its container.
func (l lines) Do(req *http.Request) (*http.Response, error) {
	_, path, _ := strings.Cut(req.URL.Path, "/colls/")
	name, _, _ := strings.Cut(path, "/")
	return cmp.Or(map[string]*account.Line{"catalog": l.catalog, "cabinet": l.cabinet, "bundles": l.bundles}[name], l.others).Do(req)
}

// A usage is what has gone over lines.
type usage struct{ catalog, cabinet, bundles account.Count }

func (l lines) count() usage { return usage{l.catalog.Count(), l.cabinet.Count(), l.bundles.Count()} }

func (u usage) since(before usage) usage {
	return usage{u.catalog.Since(before.catalog), u.cabinet.Since(before.cabinet), u.bundles.Since(before.bundles)}
}

func (u usage) units() float64 { return u.catalog.Units + u.cabinet.Units + u.bundles.Units }

func (u usage) requests() int64 { return u.catalog.Requests + u.cabinet.Requests + u.bundles.Requests }

func (u usage) refused() int64 { return u.catalog.Refused + u.cabinet.Refused + u.bundles.Refused }

// used tells what the account gave while there was load, in all and by container.
func (r *run) used(d *day, t throughput) {
	u, over := d.used, d.took
	r.figure("hub", "provisioned", float64(t.total()), "RU/s", nil)
	r.figure("hub", "used", u.units()/over.Seconds(), "RU/s", nil)
	for _, c := range []struct {
		name string
		of   account.Count
		has  int32
	}{{"catalog", u.catalog, t.catalog}, {"cabinet", u.cabinet, t.cabinet}, {"bundles", u.bundles, t.bundles}} {
		r.figure("hub", "used of "+c.name, 100*c.of.Units/over.Seconds()/float64(c.has), "%", nil)
	}
	r.figure("hub", "requests to the account", float64(u.requests())/over.Seconds(), "1/s", nil)
	r.figure("hub", "requests refused for throughput", float64(u.refused()), "", nil)
}
