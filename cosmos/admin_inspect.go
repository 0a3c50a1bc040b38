package cosmos

import (
	"context"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Inspect implements repository.Admin. It reads one document after the other, so documents that change
// meanwhile may contradict each other.
func (r *Repository) Inspect(ctx context.Context, recipient domain.ActorID) (repository.Inspection, error) {
	c := r.beginCall("inspect")
	in, err := c.inspectMailbox(ctx, recipient)
	return in, client.Classify("inspect "+recipient.String(), err)
}

func (c *call) inspectMailbox(ctx context.Context, recipient domain.ActorID) (repository.Inspection, error) {
	groups := c.r.opts.Groups.All()
	gates, h, err := c.readGatesAndHead(ctx, recipient, groups)
	if err != nil {
		return repository.Inspection{}, err
	}
	in := repository.Inspection{
		Recipient: recipient, Frozen: anyFrozen(gates), Reserved: h.Reserved, Watermark: h.Watermark, Saving: h.Intent != nil,
	}
	waiting := make(map[domain.Group]int64)
	for _, name := range slices.Sorted(maps.Keys(h.Cabinets)) {
		cab, err := c.inspectCabinet(ctx, recipient, name, h, gates)
		if err != nil {
			return in, err
		}
		waiting[cab.Group] += cab.Received - cab.Acknowledged
		in.Cabinets = append(in.Cabinets, cab)
	}
	for _, group := range groups {
		g := gates[group]
		found := repository.InspectedGroup{Group: group, Generation: g.Generation, Waiting: waiting[group]}
		if g.Open != "" {
			var doc bundleDoc
			if _, err := c.Read(ctx, c.r.db.bundles, recipient.String(), g.Open, &doc); err != nil && !client.IsNotFound(err) {
				return in, err
			} else if err == nil {
				b, err := doc.toBundle()
				if err != nil {
					return in, err
				}
				found.Open = &b
			}
		}
		in.Groups = append(in.Groups, found)
	}
	return in, nil
}

func (c *call) inspectCabinet(ctx context.Context, recipient domain.ActorID, name cabinetName, h *head, gates map[domain.Group]*gate) (repository.InspectedCabinet, error) {
	last, floor := h.Cabinets[name], h.cabinetFloor(name)
	cabinet, err := cabinetOf(recipient, name)
	if err != nil {
		return repository.InspectedCabinet{}, err
	}
	group, err := c.r.opts.Groups.GroupOf(cabinet.Origin)
	if err != nil {
		return repository.InspectedCabinet{}, err
	}
	at := gates[group].positionIn(name, last)
	cab := repository.InspectedCabinet{
		Cabinet: cabinet, Group: group, Received: last.Total - last.BaseTotal, Acknowledged: at.Total - last.BaseTotal, Last: last.Sequence, AcknowledgedThrough: at.Sequence, Floor: floor,
	}
	drawers, err := client.All[drawer](ctx, c.Query(c.r.db.cabinets, cabinetKey(cabinet),
		"SELECT * FROM c WHERE c.ordinal >= @from ORDER BY c.ordinal", azcosmos.QueryParameter{Name: "@from", Value: floor}))
	if err != nil {
		return cab, err
	}
	t, err := last.decodeTail(cabinet)
	if err != nil {
		return cab, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cabinet), err)
	}
	if t != nil && !slices.ContainsFunc(drawers, func(d *drawer) bool { return d.ID == t.drawer }) {
		drawers = append(drawers, &drawer{ID: t.drawer, Ordinal: last.Ordinal, FirstSequence: t.events[0].Sequence})
	}
	for _, d := range drawers {
		events := d.Count
		switch {
		case d.ID == last.Drawer:
			events = last.Fill
			if t != nil {
				d.Weight = d.Weight.Add(weightOf(t.events))
			}
		case d.Ordinal > last.Ordinal:
			continue // an unfinished Save created this drawer
		}
		cab.Drawers = append(cab.Drawers, repository.InspectedDrawer{
			ID: d.ID, Ordinal: d.Ordinal, First: d.FirstSequence, Events: events, Weight: d.Weight, Sealed: d.Sealed, Position: d.Position,
		})
	}
	return cab, nil
}
