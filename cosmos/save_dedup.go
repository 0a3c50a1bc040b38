package cosmos

import (
	"maps"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A digestLookup returns the digest of an event, and whether the recipient has received that event.
type digestLookup func(domain.EventID) (domain.Digest, bool, error)

// batchIDs returns the ids of the events in batch.
func batchIDs(batch []*pendingSave) []domain.EventID {
	var ids []domain.EventID
	for _, p := range batch {
		for i := range p.events {
			ids = append(ids, p.events[i].ID)
		}
	}
	return ids
}

// dedupBatch returns the events of batch that are new to the recipient, in order. It records in each Save
// the conflicts, the duplicates, and the error if the Save is refused. before is the plan of preceding
// events that are not in the index yet, or nil.
func (w *recipientWriter) dedupBatch(batch []*pendingSave, before *savePlan, received digestLookup) ([]numberedEvent, error) {
	most := 0
	for _, p := range batch {
		most += len(p.events)
	}
	seen := make(map[domain.EventID]domain.Digest, most) // digests of the events in before and in this batch
	if before != nil {
		for _, events := range before.events {
			for _, e := range events {
				seen[e.ID] = e.digest
			}
		}
	}
	var fresh []numberedEvent
	cabinets := w.cabinetsWith(before)
	for _, p := range batch {
		p.saved, p.refused, p.fresh = repository.Saved{}, cabinets.addCabinets(w.recipient, p.events), nil
		if p.refused != nil {
			continue
		}
		for i := range p.events {
			e := &p.events[i]
			digest, known := seen[e.ID]
			if !known {
				var err error
				if digest, known, err = received(e.ID); err != nil {
					return nil, err
				}
			}
			switch {
			case !known:
				seen[e.ID] = p.digests[i]
				fresh = append(fresh, numberedEvent{Event: e, digest: p.digests[i], save: p.span})
				p.saved.Accepted++
				p.fresh = append(p.fresh, i)
			case digest != p.digests[i]:
				p.saved.Conflicts = append(p.saved.Conflicts, i)
			case p.attempted[i]:
				p.saved.Accepted++ // an earlier attempt has stored the event: its commit was applied, but the reply was lost
			default:
				p.saved.Duplicates++
			}
		}
	}
	return fresh, nil
}

// maxCabinets is the limit for the cabinets of a recipient. The head and the gates name all of them, and a
// document may have up to 2 MB.
const maxCabinets = 1000

// cabinetNames is the set of the present cabinets of a recipient and of those that a batch will add.
type cabinetNames map[cabinetName]bool

func (w *recipientWriter) cabinetsWith(p *savePlan) cabinetNames {
	names := make(cabinetNames, len(w.head.Cabinets))
	for name := range w.head.Cabinets {
		names[name] = true
	}
	if p != nil {
		for _, part := range p.intent.Parts {
			names[part.Cabinet] = true
		}
	}
	return names
}

// addCabinets adds the cabinets of events. If the recipient would have more than maxCabinets, it adds no
// cabinet and returns an error. The limit stops a sender that wrongly uses a new content type for every
// event: a content type is a kind of data.
func (names cabinetNames) addCabinets(recipient domain.ActorID, events []domain.Event) error {
	fresh := make(cabinetNames)
	var spelled namer
	for i := range events {
		if name := spelled.cabinetName(events[i].Cabinet()); !names[name] {
			fresh[name] = true
		}
	}
	if len(fresh) > 0 && len(names)+len(fresh) > maxCabinets {
		return domain.Errorf(domain.Invalid,
			"content type: %s has events of %d kinds (origin and content type) and would get %d more, but %d are the most; use one content type for one kind of data",
			recipient, len(names), len(fresh), maxCabinets)
	}
	maps.Copy(names, fresh)
	return nil
}
