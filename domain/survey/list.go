package survey

import (
	"cmp"
	"context"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Service returns lists of mailboxes. It is safe for concurrent use.
type Service struct{ lines repository.Survey }

// New returns a Service that lists the lines of a survey.
func New(lines repository.Survey) *Service { return &Service{lines} }

// An Order is the order of a list.
type Order string

// The orders of a list. Mailboxes with equal sort keys are in the order of their recipients.
const (
	ByAge    Order = "age"    // descending age of the oldest waiting event; a mailbox of unknown age comes first
	ByEvents Order = "events" // mailboxes with the most waiting events come first
)

// Orders lists all orders; the first is the default.
var Orders = []Order{ByAge, ByEvents}

// Numbers of mailboxes on a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// A Query selects a page of mailboxes.
type Query struct {
	State domain.MailboxState // state of the mailboxes; "": any state
	Order Order               // "": ByAge
	After string              // Page.Next of the previous page; "": the first page
	Size  int                 // 0: DefaultPage
}

// A Page is a part of a list.
type Page struct {
	SurveyedAt time.Time // time of the last complete survey; zero: the first survey is not complete
	Mailboxes  []domain.Mailbox
	Matching   int    // number of mailboxes in the whole list
	Next       string // Query.After for the next page; "": this is the last page
}

// Check returns an Invalid error if q is not valid.
func (q *Query) Check() error {
	if q.State != "" && !slices.Contains(domain.MailboxStates, q.State) {
		return domain.Errorf(domain.Invalid, "state: want one of %s, got %q", joinWords(domain.MailboxStates), domain.Shorten(string(q.State)))
	}
	if q.Order != "" && !slices.Contains(Orders, q.Order) {
		return domain.Errorf(domain.Invalid, "sort: want one of %s, got %q", joinWords(Orders), domain.Shorten(string(q.Order)))
	}
	if q.Size < 0 || q.Size > MaxPage {
		return domain.Errorf(domain.Invalid, "size: want 1 to %d, got %d", MaxPage, q.Size)
	}
	_, err := q.startPosition()
	return err
}

func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// List returns a page. A line that changes between the reads of two pages may be on both pages or on
// neither page.
func (s *Service) List(ctx context.Context, q Query) (Page, error) {
	if err := q.Check(); err != nil {
		return Page{}, err
	}
	q.Order, q.Size = cmp.Or(q.Order, ByAge), cmp.Or(q.Size, DefaultPage)
	after, err := q.startPosition()
	if err != nil {
		return Page{}, err
	}
	lines, err := s.lines.Surveyed(ctx)
	if err != nil {
		return Page{}, err
	}
	page := Page{SurveyedAt: lines.At()}
	first := newFirstPositions(q.Size + 1) // 1: an additional position shows that another page follows
	for m := range lines.Summaries() {
		if q.State != "" && m.State != q.State {
			continue
		}
		page.Matching++
		if at := positionOf(&m, q.Order); after == nil || at.compare(*after) > 0 {
			first.add(at)
		}
	}
	positions := first.sortedPositions()
	if len(positions) > q.Size {
		positions = positions[:q.Size]
		page.Next = positions[q.Size-1].encodeToken(q.Order)
	}
	for _, at := range positions {
		if m, ok := lines.Mailbox(at.recipient); ok {
			page.Mailboxes = append(page.Mailboxes, m)
		}
	}
	return page, nil
}

// A listPosition is the position of a mailbox in a list.
type listPosition struct {
	key       int64 // sort key; the list is in ascending order of keys
	recipient domain.ActorID
}

func positionOf(m *domain.MailboxSummary, by Order) listPosition {
	p := listPosition{recipient: m.Recipient}
	switch {
	case by == ByEvents:
		p.key = -m.Waiting.Events
	case m.Waiting.Events == 0:
		p.key = math.MaxInt64
	case !m.Waiting.Oldest.IsZero():
		p.key = m.Waiting.Oldest.UnixMilli()
	}
	return p
}

func (p listPosition) compare(o listPosition) int {
	return cmp.Or(cmp.Compare(p.key, o.key), strings.Compare(p.recipient.String(), o.recipient.String()))
}

// encodeToken returns the text of a position, for Query.After.
func (p listPosition) encodeToken(by Order) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(by) + "," + strconv.FormatInt(p.key, 10) + "," + p.recipient.String()))
}

// startPosition returns the position after which the page begins, or nil for the first page.
func (q *Query) startPosition() (*listPosition, error) {
	if q.After == "" {
		return nil, nil //nolint:nilnil // the query starts at the beginning
	}
	text, err := base64.RawURLEncoding.DecodeString(q.After)
	parts := strings.Split(string(text), ",")
	if err != nil || len(parts) != 3 {
		return nil, errAfter
	}
	if by := cmp.Or(q.Order, ByAge); parts[0] != string(by) {
		return nil, domain.Errorf(domain.Invalid, "after: it is of a list in another order; ask for the first page of this one")
	}
	var p listPosition
	if p.key, err = strconv.ParseInt(parts[1], 10, 64); err != nil {
		return nil, errAfter
	}
	if p.recipient, err = domain.ParseActorID(parts[2]); err != nil {
		return nil, errAfter
	}
	return &p, nil
}

var errAfter = domain.Errorf(domain.Invalid, "after: want the next of the previous page, unchanged")
