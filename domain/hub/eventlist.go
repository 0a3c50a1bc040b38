package hub

import (
	"iter"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An eventList contains the events of a bundle while its body is read. It needs a third of the memory of StoredEvents,
// because it has only the fields that a body needs: no payloads and no times.
type eventList struct {
	pieces  [][]listedEvent // pieces contain up to maxPiece events each, so that adding an event never copies many events
	kinds   []domain.Event  // kinds contains the fields that consecutive events have in common
	objects []string        // objects contains the names of the objects with payloads
}

// maxPiece is the maximum number of events in a piece.
const maxPiece = 512

type listedEvent struct {
	id             domain.EventID
	kind, object   uint32 // indexes into kinds and objects
	sum            uint32
	weight         domain.Weight
	sequence       domain.Sequence
	offset, length int64
}

func (l *eventList) add(e *repository.StoredEvent) {
	last := len(l.pieces) - 1
	switch {
	case last < 0:
		l.pieces = append(l.pieces, nil) // the first piece starts small, because most bundles are small
		last++
	case len(l.pieces[last]) == maxPiece:
		l.pieces = append(l.pieces, make([]listedEvent, 0, maxPiece))
		last++
	}
	l.pieces[last] = append(l.pieces[last], listedEvent{
		id: e.ID, kind: l.kindOf(&e.Event), object: l.objectOf(e.PayloadAt.Object), sum: e.PayloadAt.Sum,
		weight: e.Weight, sequence: e.Sequence, offset: e.PayloadAt.Offset, length: e.PayloadAt.Length,
	})
}

// kindOf returns the index in kinds of the fields that e shares with its neighbors.
func (l *eventList) kindOf(e *domain.Event) uint32 {
	last := len(l.kinds) - 1
	if last >= 0 {
		k := &l.kinds[last]
		if k.Cabinet() == e.Cabinet() && k.DocumentType == e.DocumentType && k.SupportsBundling == e.SupportsBundling {
			return uint32(last) //nolint:gosec // there are fewer kinds than events
		}
	}
	l.kinds = append(l.kinds, domain.Event{
		Recipient: e.Recipient, Origin: e.Origin, ContentType: e.ContentType,
		DocumentType: e.DocumentType, SupportsBundling: e.SupportsBundling,
	})
	return uint32(last + 1) //nolint:gosec // there are fewer kinds than events
}

// objectOf returns the index of an object in objects. It adds the object unless it equals the last one.
func (l *eventList) objectOf(object string) uint32 {
	last := len(l.objects) - 1
	if last < 0 || l.objects[last] != object {
		l.objects = append(l.objects, object)
		last++
	}
	return uint32(last) //nolint:gosec // there are fewer objects than events
}

func (l *eventList) len() int {
	last := len(l.pieces) - 1
	if last < 0 {
		return 0
	}
	return last*maxPiece + len(l.pieces[last])
}

func (l *eventList) listedAt(i int) *listedEvent { return &l.pieces[i/maxPiece][i%maxPiece] }

// eventAt returns event i.
func (l *eventList) eventAt(i int) repository.StoredEvent {
	from := l.listedAt(i)
	e := repository.StoredEvent{Event: l.kinds[from.kind], Sequence: from.sequence, PayloadAt: l.payloadAt(i)}
	e.ID, e.Weight = from.id, from.weight
	return e
}

// payloadAt returns where the payload of event i is stored.
func (l *eventList) payloadAt(i int) repository.Section {
	from := l.listedAt(i)
	return repository.Section{Object: l.objects[from.object], Offset: from.offset, Length: from.length, Sum: from.sum}
}

// listEvents reads all events into a list.
func listEvents(events iter.Seq2[repository.StoredEvent, error]) (*eventList, error) {
	list := &eventList{}
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		list.add(&e)
	}
	return list, nil
}
