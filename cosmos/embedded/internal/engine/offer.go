package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

const (
	minThroughput     = 400
	minAutoscale      = 1000
	maxThroughput     = 1_000_000
	defaultThroughput = 400
	autoscaleFactor   = 10 // ratio of an offer's highest to its lowest throughput
)

// An Offer is the throughput of a container, or of a database that shares its throughput. It is immutable; a change
// creates a new one.
type Offer struct {
	Number    uint32 `json:"number"`
	Manual    int    `json:"manual,omitempty"`
	Autoscale int    `json:"autoscale,omitempty"` // maximum RU/s; 0 for a manual offer
	Highest   int    `json:"highest"`             // highest throughput so far, which determines the minimum
	Version   uint64 `json:"version"`
	Changed   int64  `json:"changed"` // time of the last change, in seconds since 1970
}

// ID returns the resource id of the offer.
func (o *Offer) ID() string {
	id := strconv.FormatUint(uint64(o.Number), 36)
	return "0000"[min(4, len(id)):] + id
}

// Throughput returns the maximum throughput of the offer in request units per second.
func (o *Offer) Throughput() int { return max(o.Manual, o.Autoscale) }

// MinThroughput returns the lowest throughput to which the offer can be set.
func (o *Offer) MinThroughput() int {
	if o.Autoscale > 0 {
		return roundUp(max(minAutoscale, o.Highest/10), 1000)
	}
	return roundUp(max(minThroughput, o.Highest/100), 100)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// A Throughput is the throughput that a request asks for. The zero value asks for none.
type Throughput struct {
	Manual    int `json:"manual,omitempty"`
	Autoscale int `json:"autoscale,omitempty"` // maximum
}

// Check returns an error for a throughput that Cosmos DB does not offer.
func (t Throughput) Check() error {
	switch {
	case t.Manual != 0 && t.Autoscale != 0:
		return badRequest("throughput is either manual or autoscale, not both")
	case t.Autoscale != 0 && (t.Autoscale < minAutoscale || t.Autoscale > maxThroughput || t.Autoscale%1000 != 0):
		return badRequest("autoscale throughput %d: want a multiple of 1000 from 1000 to %d", t.Autoscale, maxThroughput)
	case t.Manual != 0 && (t.Manual < minThroughput || t.Manual > maxThroughput || t.Manual%100 != 0):
		return badRequest("throughput %d: want a multiple of 100 from 400 to %d", t.Manual, maxThroughput)
	}
	return nil
}

func (e *Engine) newOffer(number uint32, t Throughput, version uint64) *Offer {
	if t == (Throughput{}) {
		return nil
	}
	return &Offer{Number: number, Manual: t.Manual, Autoscale: t.Autoscale, Highest: max(t.Manual, t.Autoscale), Version: version, Changed: e.clock().Unix()}
}

// A Provisioned is an offer with the database or container to which it belongs.
type Provisioned struct {
	*Offer
	Database  string
	Container string // "" if the offer belongs to the database
	rid, self string
	etag      string
}

// JSON returns the offer as JSON for clients.
func (p Provisioned) JSON() []byte {
	content := map[string]any{
		"offerThroughput": p.Manual, "offerIsRUPerMinuteThroughputEnabled": false,
		"offerMinimumThroughputParameters": map[string]int{"maxThroughputEverProvisioned": p.Highest},
	}
	if p.Autoscale > 0 {
		content["offerThroughput"] = p.Autoscale / autoscaleFactor // lowest throughput that Azure bills
		content["offerAutopilotSettings"] = map[string]int{"maxThroughput": p.Autoscale}
	}
	b, err := json.Marshal(map[string]any{
		"id": p.ID(), "_rid": p.ID(), "_self": "offers/" + p.ID() + "/", "_etag": p.etag, "_ts": p.Changed,
		"offerVersion": "V2", "offerType": "Invalid", "resource": p.self, "offerResourceId": p.rid, "content": content,
	})
	if err != nil {
		panic(err) // cannot fail for strings and numbers
	}
	return b
}

// Migrated returns the throughput after a migration between manual and autoscale. The maximum does not change.
func (p Provisioned) Migrated(toAutoscale bool) (Throughput, error) {
	switch {
	case toAutoscale == (p.Autoscale > 0):
		return Throughput{}, badRequest("the throughput already is of this kind")
	case toAutoscale:
		return Throughput{Autoscale: roundUp(max(minAutoscale, p.Manual), 1000)}, nil
	}
	return Throughput{Manual: p.Autoscale}, nil
}

// Offers returns all offers in the order of their creation.
func (e *Engine) Offers() []Provisioned {
	var all []Provisioned
	for _, db := range e.Databases() {
		if db.offer != nil {
			all = append(all, Provisioned{Offer: db.offer, Database: db.ID, rid: db.rid, self: "dbs/" + db.rid + "/", etag: e.formatETag(db.offer.Version)})
		}
		for _, c := range db.containers {
			if c.offer != nil {
				all = append(all, Provisioned{Offer: c.offer, Database: db.ID, Container: c.ID, rid: c.RID, self: c.self, etag: e.formatETag(c.offer.Version)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Provisioned) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Offer returns the offer with this resource id.
func (e *Engine) Offer(id string) (Provisioned, error) {
	for _, p := range e.Offers() {
		if p.ID() == id {
			return p, nil
		}
	}
	return Provisioned{}, notFound("offer", id)
}

// ReplaceOffer changes an offer, if ifMatch is empty or the etag of the offer. It splits ranges if more physical
// partitions are needed; ranges never merge.
func (e *Engine) ReplaceOffer(ctx context.Context, id, ifMatch string, t Throughput) (Provisioned, error) {
	if err := t.Check(); err != nil {
		return Provisioned{}, err
	}
	if t == (Throughput{}) {
		return Provisioned{}, badRequest("the offer has neither offerThroughput nor offerAutopilotSettings")
	}
	p, err := e.Offer(id)
	if err != nil {
		return Provisioned{}, err
	}
	err = e.changeDatabase(ctx, p.Database, func(tx disk.Tx, version uint64) (*Database, error) {
		if p, err = e.Offer(id); err != nil { // the offer may have been deleted while this call waited for the lock
			return nil, err
		}
		if err := checkETag(ifMatch, p.etag); err != nil {
			return nil, err
		}
		next := e.newOffer(p.Number, t, version)
		next.Highest = max(next.Highest, p.Highest)
		if least := next.MinThroughput(); next.Throughput() < least {
			return nil, newErrorf(http.StatusBadRequest, "throughput %d is below the minimum of this resource, %d", next.Throughput(), least)
		}
		db, err := e.Database(p.Database)
		if err != nil {
			return nil, err
		}
		if p.Container == "" {
			changed := *db
			changed.offer = next
			putRecord(tx, databaseKey(db.ID), changed.toRecord())
			return &changed, nil
		}
		changed := *db.containers[p.Container]
		changed.offer = next
		changed.ranges, changed.nextRange = splitRanges(changed.ranges, e.countRanges(&changed), changed.nextRange, changed.keyVersion, version)
		putRecord(tx, containerKey(db.ID, changed.ID), changed.toRecord())
		return db.withContainer(&changed), nil
	})
	if err != nil {
		return Provisioned{}, err
	}
	return e.Offer(id)
}

// countRanges returns how many physical partitions the container needs.
func (e *Engine) countRanges(c *Container) int {
	throughput := 0
	if c.offer != nil {
		throughput = c.offer.Throughput()
	}
	return countRangesFor(throughput, e.sizeOfContainer(c.number).Load(), e.rangeBytes)
}
