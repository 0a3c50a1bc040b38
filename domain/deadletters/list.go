package deadletters

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// Limits of a list.
const (
	MaxPage = 100   // maximum number of dead letters in a page
	maxScan = 1_000 // maximum number of dead letters that are read for a page
)

// A Query selects dead letters of a queue.
type Query struct {
	After  int64  // only dead letters with larger numbers
	Reason string // only dead letters with this reason; "": all
	Limit  int    // size of the page, from 1 to MaxPage
}

// A Page is a part of the dead letters of a queue.
type Page struct {
	DeadLetters []DeadLetter
	Next        int64 // Query.After for the next page; 0: no further dead letters are known
}

// List returns a page of the dead letters of a queue, in the order of their numbers. A call reads
// up to 1,000 dead letters, so a page for one reason may be empty although another page follows.
func (s *Service) List(ctx context.Context, queue string, q Query) (Page, error) {
	if _, err := s.Queue(queue); err != nil {
		return Page{}, err
	}
	if q.After < 0 || q.Limit < 1 || q.Limit > MaxPage {
		return Page{}, domain.Errorf(domain.Invalid, "want a page of 1 to %d dead letters after a number of at least 0", MaxPage)
	}
	return s.scan(ctx, queue, q)
}

// scan reads dead letters until the page is full, the queue has no more, or it has read maxScan.
func (s *Service) scan(ctx context.Context, queue string, q Query) (page Page, err error) {
	for after, read := q.After, 0; ; {
		found, err := s.opts.Bus.Peek(ctx, queue, after, MaxPage)
		if err != nil {
			return Page{}, markBusError(err)
		}
		if len(found) == 0 {
			page.Next = 0
			return page, nil
		}
		for i := range found {
			after = found[i].Number
			page.Next = after
			if q.Reason == "" || found[i].Reason == q.Reason {
				page.DeadLetters = append(page.DeadLetters, found[i])
			}
			if len(page.DeadLetters) == q.Limit {
				return page, nil
			}
		}
		if read += len(found); read >= maxScan {
			return page, nil
		}
	}
}
