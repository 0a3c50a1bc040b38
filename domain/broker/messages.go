package broker

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A MessageStatus is the status of a message for all its consumers.
type MessageStatus string

// The statuses of a message.
const (
	Acknowledged   MessageStatus = "Acknowledged"     // at least one consumer has not taken the message
	OutForDelivery MessageStatus = "Out-for-delivery" // all consumers that were registered before the message have taken it
)

// A Message is a message of a channel.
type Message struct {
	ID          string
	ProducerID  string // the id that the producer has chosen
	Producer    string // name of the producer
	Priority    int
	ContentType string
	Metadata    map[string]string
	Received    time.Time
	Status      MessageStatus
	Payload     []byte // omitted from lists of messages
	Jobs        []Job  // only in the result of Service.Message
}

func describeMessage(e *repository.Entry) *Message {
	return &Message{
		ID: e.Position.MessageID(), ProducerID: e.ID, Producer: e.Attributes[producerAttribute], Priority: e.Priority,
		ContentType: e.ContentType, Metadata: MetadataOf(&e.Message), Received: e.Published, Payload: e.Payload,
	}
}

// statusOf returns the status of a message.
func statusOf(consumers []storedConsumer, e domain.EntryID) MessageStatus {
	for i := range consumers {
		if !consumers[i].hasTaken(e) {
			return Acknowledged
		}
	}
	return OutForDelivery
}

func noMessage(id string) error {
	return domain.Errorf(domain.NotFound, "there is no message %s: it was never sent, or was removed when its retention had passed", domain.Shorten(id))
}

// findEntry returns the entry of a message by either of its ids. It fails with NotFound if
// the message does not exist.
func (s *Service) findEntry(ctx context.Context, channel domain.PartyID, id string) (*repository.Entry, error) {
	var at domain.Position
	wanted, isOurs := domain.ParseMessageID(id)
	var err error
	if isOurs {
		at, err = s.ports.Streams.Seek(ctx, channel.Stream(), wanted.Priority, func(number int64, _ time.Time) bool { return number < wanted.Number })
		at.EntryID = wanted // Read begins at the page of at and continues to the page of the entry
	} else {
		at, err = s.ports.Streams.Find(ctx, channel.Stream(), id)
	}
	if domain.KindOf(err) == domain.NotFound {
		return nil, noMessage(id)
	}
	if err != nil {
		return nil, err
	}
	read, isComplete, err := s.readEntries(ctx, channel.Stream(), []domain.Position{at})
	if e := read[at.EntryID]; e != nil || err != nil {
		return e, err
	}
	if !isComplete {
		return nil, s.explainMissing(ctx, channel.Stream(), at.EntryID, id)
	}
	return nil, noMessage(id)
}

// explainMissing returns a NotFound error for a message that was not found. If the message
// exists and the read was stale, it returns errNotVisible.
func (s *Service) explainMissing(ctx context.Context, stream domain.StreamName, e domain.EntryID, id string) error {
	end, err := s.ports.Streams.CurrentEnd(ctx, stream)
	if err != nil {
		return err
	}
	for _, p := range end.Positions {
		if p.Priority == e.Priority && e.Number < p.Number {
			return errNotVisible(id)
		}
	}
	return noMessage(id)
}

// errNotVisible reports a message that another node has stored and this node cannot read yet.
func errNotVisible(id string) error {
	return domain.Errorf(domain.Unavailable, "message %s is not visible to this node yet; send the request again", domain.Shorten(id))
}

// Message returns a message by either of its ids, with its payload and its jobs. It fails with
// NotFound if the message does not exist.
func (s *Service) Message(ctx context.Context, creds *Credentials, channel domain.PartyID, id string, reserve Reserve) (*Message, error) {
	if err := s.requireReader(ctx, creds, channel); err != nil {
		return nil, err
	}
	e, err := s.findEntry(ctx, channel, id)
	if err != nil {
		return nil, err
	}
	if err := reserve.acquireBytes(ctx, payloadSize(e)); err != nil {
		return nil, err
	}
	m := describeMessage(e)
	if !e.PayloadAt.IsZero() {
		if m.Payload, err = s.readPayload(ctx, e.PayloadAt); err != nil {
			return nil, err
		}
	}
	consumers, err := s.readConsumers(ctx, channel)
	if err != nil {
		return nil, err
	}
	m.Status = statusOf(consumers, e.Position.EntryID)
	m.Jobs, err = s.readJobs(ctx, consumers, e.Position.EntryID, e.Published)
	return m, err
}

// A Reserve acquires memory for payloads of a number of bytes in total, before large payloads
// are read. nil acquires nothing.
type Reserve func(ctx context.Context, bytes int64) error

func (r Reserve) acquireBytes(ctx context.Context, bytes int64) error {
	if r == nil {
		return nil
	}
	return r(ctx, bytes)
}

func payloadSize(e *repository.Entry) int64 { return int64(len(e.Payload)) + e.PayloadAt.Length }

// readPayload reads a large payload.
func (s *Service) readPayload(ctx context.Context, at repository.Section) ([]byte, error) {
	r, err := s.ports.Content.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, domain.MaxPayload))
}

// A MessageQuery selects the messages of a list.
type MessageQuery struct {
	First domain.EntryID // where the list begins. Low priorities come first, and within a priority old messages
	Limit int
	// StatusChangedSince leaves out messages whose status has certainly not changed since then.
	// The marks of cursors limit the precision: the list may have messages whose status changed
	// earlier. Zero: all messages.
	StatusChangedSince time.Time
}

// listBatch is the number of entries that are read at a time.
const listBatch = 100

// maxListReads is the limit for the reads of a stream for one list.
const maxListReads = 64

// Messages lists messages without payloads and jobs. If more is true, the list continues at next. A
// list that would read too many entries ends early, perhaps without messages, and continues at
// next.
func (s *Service) Messages(ctx context.Context, creds *Credentials, channel domain.PartyID, q MessageQuery) (messages []*Message, next domain.EntryID, more bool, err error) {
	if err := s.requireReader(ctx, creds, channel); err != nil {
		return nil, next, false, err
	}
	consumers, err := s.readConsumers(ctx, channel)
	if err != nil {
		return nil, next, false, err
	}
	l := &lister{service: s, channel: channel, consumers: consumers, query: &q}
	end, err := s.ports.Streams.End(ctx, channel.Stream())
	if err != nil {
		return nil, next, false, err
	}
	for _, p := range end.Positions { // the lowest priority first
		if p.Priority < q.First.Priority || p.Number == 0 {
			continue
		}
		from := domain.EntryID{Priority: p.Priority}
		if p.Priority == q.First.Priority {
			from = q.First
		}
		if next, more, err = l.listPriority(ctx, from, p.Number); more || err != nil {
			return l.found, next, more, err
		}
	}
	return l.found, domain.EntryID{}, false, nil
}

type lister struct {
	service   *Service
	channel   domain.PartyID
	consumers []storedConsumer
	query     *MessageQuery
	found     []*Message
	reads     int
}

// listPriority lists the messages of a priority from an entry up to, but not including, number
// end.
func (l *lister) listPriority(ctx context.Context, from domain.EntryID, end int64) (next domain.EntryID, more bool, err error) {
	begin := l.firstUntaken(from.Priority)
	at, err := l.service.ports.Streams.Seek(ctx, l.channel.Stream(), from.Priority, func(number int64, published time.Time) bool {
		return number < from.Number || number < begin && published.Before(l.query.StatusChangedSince)
	})
	if err != nil {
		return next, false, err
	}
	at.Number = max(at.Number, from.Number)
	for at.Number < end {
		if l.reads >= maxListReads {
			return at.EntryID, true, nil
		}
		l.reads++
		read, err := l.service.ports.Streams.Read(ctx, l.channel.Stream(), at, listBatch)
		if err != nil {
			return next, false, err
		}
		if len(read.Entries) == 0 {
			return next, false, nil // the entry is not visible yet, or was removed
		}
		for i := range read.Entries {
			e := &read.Entries[i]
			if !l.hasChanged(e) {
				continue
			}
			if len(l.found) == l.query.Limit {
				return e.Position.EntryID, true, nil
			}
			m := describeMessage(e)
			m.Payload, m.Status = nil, statusOf(l.consumers, e.Position.EntryID)
			l.found = append(l.found, m)
		}
		at = read.Entries[len(read.Entries)-1].Position.Next()
	}
	return next, false, nil
}

// firstUntaken returns a number: at the time of the query, all consumers had taken all entries of
// the priority with lower numbers.
func (l *lister) firstUntaken(priority int) int64 {
	first := int64(math.MaxInt64)
	for i := range l.consumers {
		n := int64(0)
		if s := l.consumers[i].standing; s != nil {
			n = s.NumberAt(priority, l.query.StatusChangedSince)
		}
		first = min(first, n)
	}
	return first
}

// hasChanged reports whether the status of a message has changed since the time of the query: it
// was received, or the last of its consumers has taken it.
func (l *lister) hasChanged(e *repository.Entry) bool {
	since := l.query.StatusChangedSince
	if since.IsZero() || !e.Published.Before(since) {
		return true
	}
	id := e.Position.EntryID
	if statusOf(l.consumers, id) != OutForDelivery {
		return false
	}
	for i := range l.consumers {
		c := &l.consumers[i]
		if c.hasJobFor(id) && id.Number >= c.standing.NumberAt(id.Priority, since) {
			return true
		}
	}
	return false
}
