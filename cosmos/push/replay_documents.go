package push

import (
	"fmt"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

var replayStateNames = map[domain.ReplayState]string{domain.ReplayRunning: "", domain.ReplayDone: "done", domain.ReplayStopped: "stopped"}

func parseReplayState(text string) (domain.ReplayState, error) {
	for state, name := range replayStateNames {
		if name == text {
			return state, nil
		}
	}
	return 0, fmt.Errorf("state of a replay: want done or stopped, got %q", domain.Shorten(text))
}

// setReplay copies the replay of a standing to d.
func (d *cursorDoc) setReplay(s *domain.Standing) {
	d.Followed = s.Followed
	r := s.Replay
	if r == nil {
		return
	}
	d.ReplayID, d.ReplayNumber, d.ReplayFrom, d.ReplayTo = r.ID, r.Number, toMicros(r.From), toMicros(r.To)
	d.ReplayFilter, d.ReplayDead, d.ReplayRate = r.Filter, r.OnlyDead, r.Rate
	d.ReplayState, d.ReplayAt = replayStateNames[r.State], r.At.String()
	for p, n := range r.End {
		if n > 0 {
			d.ReplayEnd = append(d.ReplayEnd, domain.EntryID{Priority: p, Number: n}.String())
		}
	}
	d.ReplaySeen, d.ReplayMatched, d.ReplaySkipped = r.Seen, r.Matched, r.Skipped
}

// toReplay parses the replay that d stores. It returns nil if d stores no replay.
func (d *cursorDoc) toReplay(p *documentParser) *domain.Replay {
	if d.ReplayID == "" {
		return nil
	}
	r := &domain.Replay{
		ID: d.ReplayID, Number: d.ReplayNumber,
		ReplayRange: domain.ReplayRange{
			From: fromMicros(d.ReplayFrom), To: fromMicros(d.ReplayTo), Filter: d.ReplayFilter, OnlyDead: d.ReplayDead, Rate: d.ReplayRate,
		},
		State: parse(p, d.ReplayState, parseReplayState), At: parse(p, d.ReplayAt, domain.ParsePosition),
		Seen: d.ReplaySeen, Matched: d.ReplayMatched, Skipped: d.ReplaySkipped,
	}
	for _, e := range parseAll(p, d.ReplayEnd, parseEntryID) {
		r.End[e.Priority] = e.Number
	}
	return r
}

// A replayRequestDoc is a domain.ReplayRequest that is stored in the shard entry of a cursor.
type replayRequestDoc struct {
	ID     string `json:"id"`
	Number int    `json:"n"`

	Position  string `json:"position,omitempty"` // position of the delivery to replay; set only if the request is for one delivery
	Published int64  `json:"published,omitempty"`

	From   int64  `json:"from,omitempty"` // start of the range to replay, in microseconds; set only if the request is for a range
	To     int64  `json:"to,omitempty"`
	Filter string `json:"filter,omitempty"`
	Dead   bool   `json:"dead,omitempty"`
	Rate   int    `json:"rate,omitempty"`

	Stop    string                `json:"stop,omitempty"`
	Peek    int                   `json:"peek,omitempty"`    // limit for the deliveries in the bundle to peek
	Entries []string              `json:"entries,omitempty"` // positions of the candidates for the bundle, in order
	Dequeue string                `json:"dequeue,omitempty"` // id of the bundle to dequeue
	Unknown client.UnknownMembers `json:",embed"`
}

func makeReplayRequestDoc(r *domain.ReplayRequest) replayRequestDoc {
	d := replayRequestDoc{ID: r.ID, Number: r.Number, Stop: r.Stop, Dequeue: r.Dequeue}
	if r.Delivery != nil {
		position := r.Delivery.Position
		d.Position, d.Published = position.String(), toMicros(r.Delivery.Published)
	}
	if r.Range != nil {
		d.From, d.To, d.Filter, d.Dead, d.Rate = toMicros(r.Range.From), toMicros(r.Range.To), r.Range.Filter, r.Range.OnlyDead, r.Range.Rate
	}
	if r.Peek != nil {
		d.Peek, d.Entries = r.Peek.Limit, textsOf(r.Peek.Entries)
	}
	return d
}

func (d *replayRequestDoc) toRequest(p *documentParser) domain.ReplayRequest {
	r := domain.ReplayRequest{ID: d.ID, Number: d.Number, Stop: d.Stop, Dequeue: d.Dequeue}
	if d.Position != "" {
		r.Delivery = &domain.ReplayDelivery{Position: parse(p, d.Position, domain.ParsePosition), Published: fromMicros(d.Published)}
	}
	if d.Rate > 0 {
		r.Range = &domain.ReplayRange{From: fromMicros(d.From), To: fromMicros(d.To), Filter: d.Filter, OnlyDead: d.Dead, Rate: d.Rate}
	}
	if d.Peek > 0 {
		r.Peek = &domain.PeekRequest{Limit: d.Peek, Entries: parseAll(p, d.Entries, domain.ParsePosition)}
	}
	return r
}

// lastRequest returns the number of the latest request in the shard entry d, or zero.
func (d *entryDoc) lastRequest() int {
	if n := len(d.Replays); n > 0 {
		return d.Replays[n-1].Number
	}
	return 0
}

// toRequests parses the requests that the shard entry d stores.
func (d *entryDoc) toRequests() (domain.ReplayRequests, error) {
	var p documentParser
	var all domain.ReplayRequests
	for i := range d.Replays {
		all = append(all, d.Replays[i].toRequest(&p))
	}
	if p.err != nil {
		return nil, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return all, nil
}
