package market

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/bench/account"
)

// Throughput is the throughput of the hub's containers, in request units per
// second.
type Throughput struct{ Catalog, Cabinet, Bundles int32 }

// Total returns the sum of the throughputs.
func (t Throughput) Total() int32 { return t.Catalog + t.Cabinet + t.Bundles }

// A Usage is the use of the hub's containers.
type Usage struct{ Catalog, Cabinet, Bundles account.Count }

// Units returns the request units of all containers.
func (u Usage) Units() float64 { return u.Catalog.Units + u.Cabinet.Units + u.Bundles.Units }

// Requests returns the number of all requests.
func (u Usage) Requests() int64 { return u.Catalog.Requests + u.Cabinet.Requests + u.Bundles.Requests }

// Refused returns the number of requests that exceeded the throughput.
func (u Usage) Refused() int64 { return u.Catalog.Refused + u.Cabinet.Refused + u.Bundles.Refused }

func (u Usage) usageSince(before Usage) Usage {
	return Usage{u.Catalog.Since(before.Catalog), u.Cabinet.Since(before.Cabinet), u.Bundles.Since(before.Bundles)}
}

// lines are the lines to the account, one for each container of the hub.
type lines struct{ catalog, cabinet, bundles, others *account.Line }

func newLines(a *account.Account) lines { return lines{a.Line(), a.Line(), a.Line(), a.Line()} }

// Do sends a request over the line of its container.
func (l lines) Do(req *http.Request) (*http.Response, error) {
	_, path, _ := strings.Cut(req.URL.Path, "/colls/")
	name, _, _ := strings.Cut(path, "/")
	return cmp.Or(map[string]*account.Line{"catalog": l.catalog, "cabinet": l.cabinet, "bundles": l.bundles}[name], l.others).Do(req)
}

func (l lines) readUsage() Usage {
	return Usage{l.catalog.Count(), l.cabinet.Count(), l.bundles.Count()}
}
