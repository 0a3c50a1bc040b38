package cosmos

import (
	"maps"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A digestLookup returns the digest of an event and whether the recipient has received the event.
type digestLookup func(domain.EventID) (domain.Digest, bool, error)

// batchIDs returns the ids of all events in batch.
func batchIDs(batch []*pendingSave) []domain.EventID {
	var ids []domain.EventID
	for _, p := range batch {
		for i := range p.events {
			ids = append(ids, p.events[i].ID)
		}
	}
	return ids
}

// dedupBatch returns the events of batch that the recipient has not received yet, in order. It records in
// each Save the conflicts, the duplicates, and the error if the Save is refused. before is a plan whose
// events are not in the index yet, or nil.
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
				p.saved.Accepted++ // an earlier attempt has stored the event, but the reply to its commit was lost
			default:
				p.saved.Duplicates++
			}
		}
	}
	return fresh, nil
}

// maxCabinets is the limit for the cabinets of a recipient. The head and the gates contain the names of
// all cabinets, and a document is limited to 2 MB.
const maxCabinets = 1000

// cabinetNames is the set of the current cabinets of a recipient, and of the cabinets that a batch will
// add.
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

// addCabinets adds the cabinets of events to names. If the recipient would then have more than
// maxCabinets, it returns an error and adds none. The limit protects against a sender that wrongly uses a
// new content type for every event.
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
