package cosmos

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The search for an event reads the same documents as a Save that finds a duplicate: the tails in the
// head, and the filters or pages of each cabinet; see save_index.go. The pages of the drawer with the
// event are read up to the event. Without a recipient, all mailboxes are searched in order. A query reads
// their heads, so a mailbox that is empty, or has all its events in tails, costs no other request.
//
// TestFindEvent_CostsWhatTheHandbookSays measures the cost.

var _ repository.Finder = (*Repository)(nil)

const (
	searchPage     = 25               // number of heads that are read in one request
	searchesAtOnce = 8                // number of mailboxes that are searched concurrently
	mailboxTime    = 12 * time.Second // time limit for one mailbox, in a search of every mailbox
	findIndexBytes = 16 << 20         // memory for the filters of one mailbox
	findCall       = "find event"     // name of the calls of a search in metrics
)

// FindEvent implements [repository.Finder]. A search of every mailbox is a background call.
func (r *Repository) FindEvent(ctx context.Context, q repository.EventQuery) (repository.EventSearch, error) {
	if q.Recipient.IsZero() {
		search, err := r.findEverywhere(ctx, &q)
		return search, client.Classify("find event "+q.ID.String(), err)
	}
	c := r.beginCall(findCall)
	c.withoutHints = true
	m := c.findInMailbox(ctx, &q, q.Recipient, nil)
	if m.err != nil && !isOfMailbox(m.err) {
		return repository.EventSearch{}, client.Classify("find event "+q.ID.String(), m.err)
	}
	search := repository.EventSearch{Mailboxes: 1}
	if m.isMissing {
		search.Mailboxes = 0
	}
	m.addTo(&search)
	return search, nil
}

// A searchPosition is the position at which a search of every mailbox continues: after the recipient
// Behind in the result page at Continuation.
type searchPosition struct {
	Continuation string `json:"continuation,omitempty"`
	Behind       string `json:"behind,omitempty"`
}

func (p searchPosition) String() string {
	if p == (searchPosition{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(client.Encode(p))
}

func parseSearchPosition(s string) (p searchPosition, err error) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && s != "" {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, domain.Errorf(domain.Invalid, "after: want the value of next from the previous response")
	}
	return p, nil
}

// findEverywhere searches all mailboxes in order, several of them concurrently.
func (r *Repository) findEverywhere(ctx context.Context, q *repository.EventQuery) (search repository.EventSearch, err error) {
	at, err := parseSearchPosition(q.After)
	if err != nil {
		return search, err
	}
	began, spent := r.opts.Clock(), 0.
	isOver := func() bool {
		return q.Limit > 0 && len(search.Found)+len(search.Saves)+len(search.Bundles) >= q.Limit || q.Units > 0 && spent >= q.Units ||
			q.Time > 0 && r.opts.Clock().Sub(began) >= q.Time
	}
	list := r.beginCall(findCall)
	list.SetBackground()
	heads := list.QueryAllPartitions(r.db.catalog, headID, "SELECT * FROM c WHERE c.id = @id", azcosmos.QueryParameter{Name: "@id", Value: headID})
	if at.Continuation != "" {
		heads.ResumeAt(at.Continuation)
	}
	for !heads.IsDone() {
		page, unread, err := nextHeads(ctx, heads)
		spent += list.Units()
		if client.StatusOf(err) == http.StatusBadRequest && at.Continuation != "" {
			err = domain.Errorf(domain.Invalid, "after: %w; begin from the start", err)
		}
		if err != nil {
			return search, err
		}
		page, unread = behindRecipient(page, unread, at.Behind)
		search.Unread = append(search.Unread, unread...)
		search.Mailboxes += len(unread)
		for some := range slices.Chunk(page, searchesAtOnce) {
			found, units := r.findInSome(ctx, q, some)
			spent += units
			for i := range found {
				if err := ctx.Err(); err != nil {
					return search, err
				}
				found[i].addTo(&search)
				search.Mailboxes++
			}
			at.Behind = some[len(some)-1].PartitionKey
			if isOver() {
				break
			}
		}
		if hasRest := len(page) > 0 && at.Behind != page[len(page)-1].PartitionKey; hasRest {
			search.Next = at.String()
			break
		}
		at = searchPosition{Continuation: heads.NextPage()}
		if isOver() {
			search.Next = at.String()
			break
		}
		list = list.renewCall()
		heads.UseCall(list.Call)
	}
	return search, nil
}

// nextHeads returns the heads of a result page, and the mailboxes whose heads cannot be read.
func nextHeads(ctx context.Context, q *client.Query) (heads []*head, unread []repository.UnreadMailbox, err error) {
	items, err := q.Next(ctx, searchPage)
	if q.SkipDamage(err) {
		return nil, []repository.UnreadMailbox{{Recipient: client.FailureOf(err).DamagedPartition(), Reason: err.Error()}}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, item := range items {
		h := &head{}
		err := q.Decode(item, h)
		if err == nil {
			_, err = domain.ParseActorID(h.PartitionKey)
		}
		if err != nil {
			unread = append(unread, repository.UnreadMailbox{Recipient: h.PartitionKey, Reason: err.Error()})
			continue
		}
		heads = append(heads, h)
	}
	return heads, unread, nil
}

// behindRecipient returns the heads of a page after the head of the recipient behind. It returns no unread
// mailboxes, because they were returned with the first part of the page. If behind is empty, it returns
// page and unread unchanged.
func behindRecipient(page []*head, unread []repository.UnreadMailbox, behind string) ([]*head, []repository.UnreadMailbox) {
	if behind == "" {
		return page, unread
	}
	i := slices.IndexFunc(page, func(h *head) bool { return h.PartitionKey == behind })
	return page[i+1:], nil
}

// findInSome searches the mailboxes of heads, several of them concurrently. It returns the results and
// the cost.
func (r *Repository) findInSome(ctx context.Context, q *repository.EventQuery, heads []*head) ([]mailboxSearch, float64) {
	found, calls := make([]mailboxSearch, len(heads)), make([]*call, len(heads))
	var searches sync.WaitGroup
	for i, h := range heads {
		c := r.beginCall(findCall)
		c.SetBackground()
		c.withoutHints = true
		calls[i] = c
		searches.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, mailboxTime)
			defer cancel()
			recipient, _ := domain.ParseActorID(h.PartitionKey) // nextHeads has checked the id
			found[i] = c.findInMailbox(ctx, q, recipient, h)
			if ctx.Err() != nil {
				found[i].err = domain.Errorf(domain.Unavailable, "the search of this mailbox took longer than %v; search it alone, by its actor", mailboxTime)
			}
		})
	}
	searches.Wait()
	units := 0.
	for _, c := range calls {
		units += c.Units()
	}
	return found, units
}

// A mailboxSearch is the result of a search in one mailbox.
type mailboxSearch struct {
	recipient domain.ActorID
	isMissing bool // the recipient has no mailbox
	found     []repository.FoundEvent
	saves     []repository.FoundSave
	bundles   []repository.FoundBundle
	unread    []string // unreadable parts of the mailbox, with reasons
	err       error    // the reason why the remaining parts were not read
}

func (m *mailboxSearch) addTo(search *repository.EventSearch) {
	search.Found, search.Saves, search.Bundles = append(search.Found, m.found...), append(search.Saves, m.saves...), append(search.Bundles, m.bundles...)
	for _, reason := range m.unread {
		search.Unread = append(search.Unread, repository.UnreadMailbox{Recipient: m.recipient.String(), Reason: reason})
	}
	if m.err != nil {
		search.Unread = append(search.Unread, repository.UnreadMailbox{Recipient: m.recipient.String(), Reason: client.Classify("find", m.err).Error()})
	}
}

// findInMailbox searches one mailbox. h is its head, or nil if it was not read.
func (c *call) findInMailbox(ctx context.Context, q *repository.EventQuery, recipient domain.ActorID, h *head) mailboxSearch {
	m := mailboxSearch{recipient: recipient}
	var located []locatedEvent
	var of *head
	m.err = c.Retry(ctx, func() (err error) {
		if of = h; of == nil {
			if of, err = c.readHead(ctx, recipient); err != nil {
				return err
			}
			m.isMissing = of.etag == ""
		}
		h = nil // the next attempt reads the head again
		if q.Trace != (domain.TraceID{}) {
			return c.findTrace(ctx, q, of, &m)
		}
		located, m.unread, err = c.locateEvent(ctx, q, recipient, of)
		return err
	})
	for i := range located {
		found, err := c.describeLocated(ctx, &located[i], of)
		if err != nil { // the description is incomplete, but the event was found
			m.unread = append(m.unread, client.Classify("where the event is in the mailbox", err).Error())
		}
		m.found = append(m.found, found)
	}
	return m
}
