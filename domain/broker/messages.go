package broker

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A MessageStatus is the status of a message, summarized over all consumers.
type MessageStatus string

// The statuses of a message.
const (
	Acknowledged   MessageStatus = "Acknowledged"     // at least one consumer has not taken the message
	OutForDelivery MessageStatus = "Out-for-delivery" // all consumers that were registered before the message have taken it
)

// A Message is a message of a channel.
type Message struct {
	ID          string
	ProducerID  string // id that the producer gave the message
	Producer    string // name of the producer
	Priority    int
	ContentType string
	Metadata    map[string]string
	Received    time.Time
	Status      MessageStatus
	Payload     []byte // Payload is omitted from lists of messages
	Jobs        []Job  // Jobs is set only by Service.Message
}

func describeMessage(e *repository.Entry) *Message {
	return &Message{
		ID: e.Position.MessageID(), ProducerID: e.ID, Producer: e.Attributes[producerAttribute], Priority: e.Priority,
		ContentType: e.ContentType, Metadata: MetadataOf(&e.Message), Received: e.Published, Payload: e.Payload,
	}
}

// statusOf returns the status of a message, given the consumers of its channel.
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

// findEntry finds the entry of a message by its id or by the producer's id. It fails with NotFound if the message does
// not exist.
func (s *Service) findEntry(ctx context.Context, channel domain.PartyID, id string) (*repository.Entry, error) {
	var at domain.Position
	wanted, isOurs := domain.ParseMessageID(id)
	var err error
	if isOurs {
		at, err = s.ports.Streams.Seek(ctx, channel.Stream(), wanted.Priority, func(number int64, _ time.Time) bool { return number < wanted.Number })
		at.EntryID = wanted // at keeps its segment and page: Read begins there, and searches later pages too
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

// explainMissing returns the error for a message that was not found: errNotVisible if the message exists but this
// node's read was stale, otherwise NotFound.
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

// errNotVisible returns the error for a message that is stored but not yet visible to this node.
func errNotVisible(id string) error {
	return domain.Errorf(domain.Unavailable, "message %s is not visible to this node yet; send the request again", domain.Shorten(id))
}

// Message finds a message by its id or by the producer's id. It returns the message with payload and jobs. It fails
// with NotFound if the message does not exist.
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

// A Reserve reserves memory before large payloads are read. bytes is their total size. nil reserves nothing.
type Reserve func(ctx context.Context, bytes int64) error

func (r Reserve) acquireBytes(ctx context.Context, bytes int64) error {
	if r == nil {
		return nil
	}
	return r(ctx, bytes)
}

func payloadSize(e *repository.Entry) int64 { return int64(len(e.Payload)) + e.PayloadAt.Length }

// readPayload reads a large payload from the content store.
func (s *Service) readPayload(ctx context.Context, at repository.Section) ([]byte, error) {
	r, err := s.ports.Content.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, domain.MaxPayload))
}

// A MessageQuery selects which messages to list.
type MessageQuery struct {
	First domain.EntryID // First is where the list begins. Lists are sorted by priority, lowest first, then by age, oldest first.
	Limit int
	// StatusChangedSince omits messages whose status has certainly not changed since this time. It is imprecise: the
	// list may also contain messages whose status changed earlier. Zero lists all messages.
	StatusChangedSince time.Time
}

// listBatch is the number of entries in one read.
const listBatch = 100

// maxListReads limits the reads of a stream for one list.
const maxListReads = 64

// Messages lists messages without payloads and jobs. If more is true, the list continues at next. A list that needs too
// many reads ends early, possibly without messages.
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
	for _, p := range end.Positions { // iterate from the lowest priority up
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

// listPriority lists the messages of one priority with numbers from the given entry up to end, exclusive.
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
			return next, false, nil // the entry was removed, or this node cannot see it yet
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

// firstUntaken returns a number such that all consumers had taken all lower-numbered entries of the priority at
// StatusChangedSince.
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

// hasChanged reports whether the status of a message may have changed since StatusChangedSince. It changes when the
// message is stored, and when the last of its consumers takes it.
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
