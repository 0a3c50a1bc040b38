package cosmos

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Entries are hints. To choose a bundle, a Peek needs one entry for each cabinet, the smallest. A Save
// writes the entry of a drawer with the first events that are not in a tail. The entry remains when the
// last of these events is acknowledged. The next Save then stores the first waiting event in the head (see
// front.go), or raises the entry, which costs less than deleting and creating it. The entry is deleted
// when the gate has moved past the drawer.
//
// Each query, and each entry that a query reads, costs request units. For few cabinets, or cabinets with
// many drawers, it is best to query the smallest entry of each cabinet. For many cabinets with few drawers
// each, it is best to query all entries at once.
const (
	fewCandidates = 3   // up to this number, the cabinets of an origin are queried one by one
	fewDrawers    = 4   // up to this number of waiting drawers, all entries of a cabinet are read
	manyTypes     = 100 // limit for the content types in one query
)

// usesEntries reports whether a Peek reads entries to choose a bundle. If events are ordered by recipient,
// entries are neither read nor written. If the order is changed later, a Peek that finds no entry for
// saved events reads the cabinet and writes the entry.
func (r *Repository) usesEntries() bool { return r.opts.Ordering != domain.ByRecipient }

// readEntries reads each candidate's smallest entry from the catalog. The cost does not depend on the
// number of drawers with waiting events.
func (c *call) readEntries(ctx context.Context, candidates []*peekCandidate) error {
	of := make(map[string][]*peekCandidate) // by partition
	for _, cand := range candidates {
		key := catalogKey(cand.cabinet.Recipient, cand.cabinet.Origin)
		of[key] = append(of[key], cand)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for key, some := range of {
		var small []*peekCandidate
		for _, cand := range some {
			if len(some) > fewCandidates && cand.countDrawers() <= fewDrawers {
				small = append(small, cand)
				continue
			}
			q := c.Query(c.r.db.catalog, key, "SELECT TOP 1 * FROM c WHERE c.contentType = @type ORDER BY c.ordinal",
				azcosmos.QueryParameter{Name: "@type", Value: cand.cabinet.ContentType.String()})
			g.Go(func() error { return c.assignEntries(ctx, q, []*peekCandidate{cand}) })
		}
		if len(small) == len(some) {
			g.Go(func() error { return c.assignEntries(ctx, c.Query(c.r.db.catalog, key, "SELECT * FROM c"), small) })
			continue
		}
		for chunk := range slices.Chunk(small, manyTypes) {
			q := c.queryEntries(key, chunk)
			g.Go(func() error { return c.assignEntries(ctx, q, chunk) })
		}
	}
	return g.Wait()
}

// countDrawers returns the number of drawers in which events of the candidate may wait.
func (cand *peekCandidate) countDrawers() int {
	return cand.last.Ordinal - max(cand.at.Ordinal, cand.floor, 1) + 1
}

// queryEntries returns a query for all entries of the candidates, which have the same origin.
func (c *call) queryEntries(key string, candidates []*peekCandidate) *client.Query {
	names := make([]string, len(candidates))
	types := make([]azcosmos.QueryParameter, len(candidates))
	for i, cand := range candidates {
		names[i] = "@type" + strconv.Itoa(i)
		types[i] = azcosmos.QueryParameter{Name: names[i], Value: cand.cabinet.ContentType.String()}
	}
	return c.Query(c.r.db.catalog, key, "SELECT * FROM c WHERE c.contentType IN ("+strings.Join(names, ", ")+")", types...)
}

// assignEntries sets the entry of each candidate to the smallest that q returns for it.
func (c *call) assignEntries(ctx context.Context, q *client.Query, candidates []*peekCandidate) error {
	found, err := client.All[catalogEntry](ctx, q)
	if err != nil {
		return err
	}
	smallest := make(map[string]*catalogEntry)
	for _, e := range found {
		if least, ok := smallest[e.ContentType]; !ok || e.Ordinal < least.Ordinal {
			smallest[e.ContentType] = e
		}
	}
	for _, cand := range candidates {
		cand.entry = smallest[cand.cabinet.ContentType.String()]
	}
	return nil
}
