package cosmos

import (
	"context"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// readGatesAndHead reads the gates and the head concurrently. A group whose gate does not exist
// yet gets a new gate without an etag.
func (c *call) readGatesAndHead(ctx context.Context, recipient domain.ActorID, groups []domain.Group) (map[domain.Group]*gate, *head, error) {
	gates := make(map[domain.Group]*gate, len(groups))
	var h *head
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		h, err = c.readHead(ctx, recipient)
		return err
	})
	g.Go(func() error { return c.readGates(ctx, recipient, groups, gates) })
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	return gates, h, nil
}

// readGates reads the gates of groups by their ids: one gate by a point read, several gates by a query on
// the index of ids. The cost depends on the number of gates, and not on the number of bundles and notices
// in the partition.
func (c *call) readGates(ctx context.Context, recipient domain.ActorID, groups []domain.Group, gates map[domain.Group]*gate) error {
	var found []*gate
	if len(groups) == 1 {
		var g gate
		etag, err := c.Read(ctx, c.r.db.bundles, recipient.String(), gateID(groups[0]), &g)
		if err != nil && !client.IsNotFound(err) {
			return err
		}
		if err == nil {
			g.ETag = etag
			found = append(found, &g)
		}
	} else {
		var err error
		ids := make([]azcosmos.QueryParameter, len(groups))
		names := make([]string, len(groups))
		for i, group := range groups {
			names[i] = "@id" + strconv.Itoa(i)
			ids[i] = azcosmos.QueryParameter{Name: names[i], Value: gateID(group)}
		}
		found, err = client.All[gate](ctx, c.Query(c.r.db.bundles, recipient.String(), "SELECT * FROM c WHERE c.id IN ("+strings.Join(names, ", ")+")", ids...))
		if err != nil {
			return err
		}
	}
	for _, group := range groups {
		gates[group] = c.r.newGate(recipient, group)
		for _, g := range found {
			if g.ID == gateID(group) {
				gates[group] = g
			}
		}
	}
	return nil
}

// gateNow returns the current gate even if reads are stale: it writes the next generation to the gate, and
// the write returns the gate. It does not create a missing gate.
func (c *call) gateNow(ctx context.Context, recipient domain.ActorID, group domain.Group) (*gate, error) {
	var g gate
	ops := client.NewPatch(gateDocument)
	ops.AppendSet("/operation", c.r.client.NewID())
	ops.AppendIncrement("/generation", 1)
	// A crash after this write leaves the gate with the next generation, and otherwise unchanged.
	err := c.Patch(ctx, c.r.db.bundles, recipient.String(), gateID(group), ops, &g)
	switch {
	case client.IsNotFound(err):
		return c.r.newGate(recipient, group), nil
	case client.IsRefused(err): // the format of the gate is newer
		if _, err = c.Read(ctx, c.r.db.bundles, recipient.String(), gateID(group), &g); err == nil {
			err = client.ErrStale
		}
	}
	return &g, err
}
