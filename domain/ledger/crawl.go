package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	listTimeout   = 30 * time.Second
	maxEmptyPages = 1000 // maximum number of consecutive listing pages that contain no objects
)

// A CrawlRequest selects the objects that a crawl compares.
type CrawlRequest struct {
	Prefix string `json:"prefix,omitempty"` // only objects whose keys have this prefix
}

// StartCrawl starts a crawl of the objects in a bucket whose keys begin with prefix. It fails with a
// *repository.JobRunsError if a crawl of the bucket is running, and with repository.ErrNoStore if the
// bucket's store is not configured.
//
// A crawl compares a store's listing with the known objects, page by page in the order of their
// keys, and stores only the differences:
//
//  1. List a page. The events that result from the page have the time at which the page was
//     requested, minus [domain.ClockMargin], so that later events of the store have later times. A
//     crash in step 1 or 2 has no effect.
//  2. Require that the keys ascend, within the page and after the previous page. List the next
//     page, and require the same of its keys. The crawl uses a page only after this step, because
//     a listing that is not in order does not prove that an object is absent.
//  3. Read the known objects from the last key of the previous page to the last key of this page,
//     and store the resulting events; see [domain.Object.EventsOfListing]. After a crash, some of
//     the events are stored.
//  4. Store the position at which the next page begins. After a crash before this step, the page
//     is listed again. The known objects then include the stored events, so the comparison finds no
//     difference. If it finds a difference again because of a stale read, the event is a duplicate:
//     events are identified by the job and a digest of their content.
func (s *Service) StartCrawl(ctx context.Context, bucket, prefix string) (domain.Job, error) {
	if _, err := domain.ParseObjectName(bucket, "key"); err != nil {
		return domain.Job{}, err
	}
	if prefix != "" {
		if _, err := domain.ParseObjectName(bucket, prefix); err != nil {
			return domain.Job{}, err
		}
	}
	if s.Source == nil {
		return domain.Job{}, repository.ErrNoStore
	}
	if _, err := s.listPage(ctx, bucket, prefix, "", 1); err != nil {
		return domain.Job{}, err
	}
	return s.createJob(ctx, domain.CrawlJob, bucket, CrawlRequest{prefix})
}

// A crawlCursor is the position at which a crawl resumes. The keys are byte slices because After
// may end within a character, which a JSON string cannot.
type crawlCursor struct {
	Page  []byte `json:"page,omitempty"`  // cursor with which the store lists the next page
	After []byte `json:"after,omitempty"` // the crawl has compared objects up to this key, cut to repository.OrderedKey bytes
	Last  []byte `json:"last,omitempty"`  // last key on the previous pages
}

// A crawlPage is one page of a store's listing. Only the last page may contain no objects.
type crawlPage struct {
	requested time.Time // time at which the page was requested
	cursor    string
	objects   []repository.SourceObject
	next      string // cursor of the next page; "": this is the last page
}

// runCrawl runs a crawl from its stored cursor to the end of the listing.
func (t *task) runCrawl(ctx context.Context) error {
	var request CrawlRequest
	if err := json.Unmarshal([]byte(t.job.Request), &request); err != nil {
		return domain.Errorf(domain.Damaged, "request of the crawl: %w", err)
	}
	var at crawlCursor
	if t.job.Cursor != "" {
		if err := json.Unmarshal([]byte(t.job.Cursor), &at); err != nil {
			return domain.Errorf(domain.Damaged, "cursor of the crawl: %w", err)
		}
	}
	if t.Source == nil {
		return repository.ErrNoStore
	}
	l := &listing{task: t, prefix: request.Prefix, last: string(at.Last)}
	page, err := l.readPage(ctx, string(at.Page))
	if err != nil {
		return err
	}
	for {
		var following *crawlPage
		if page.next != "" {
			if following, err = l.readPage(ctx, page.next); err != nil {
				return err
			}
		}
		if err := t.comparePage(ctx, request.Prefix, string(at.After), page); err != nil {
			return err
		}
		if following == nil {
			return t.completeJob(ctx)
		}
		at = crawlCursor{Page: []byte(following.cursor), After: []byte(page.endKey()), Last: []byte(page.objects[len(page.objects)-1].Key)}
		text, err := json.Marshal(at)
		if err != nil {
			return err
		}
		t.job.Cursor = string(text)
		if err := t.saveProgress(ctx); err != nil {
			return err
		}
		page = following
	}
}

// endKey returns the key up to which a known object is absent in the store if the page does not
// list it. The repository may order long keys differently from the listing if their first
// OrderedKey bytes are equal. So endKey cuts the page's last key to OrderedKey bytes, and the range
// ends before all such keys.
func (p *crawlPage) endKey() string {
	if p.next == "" {
		return ""
	}
	last := p.objects[len(p.objects)-1].Key
	return last[:min(len(last), repository.OrderedKey)]
}

// A listing reads a store's listing page by page, and requires that the keys are in order.
type listing struct {
	*task
	prefix string
	last   string // last key that was read
}

// errDisorder returns the error for a store's listing whose keys are not in order.
func errDisorder(format string, args ...any) error {
	return domain.Errorf(domain.Invalid, "the listing of the store is out of order, and nothing of its last pages was stored: "+format, args...)
}

// readPage returns the first page with objects at or after a cursor. If none exists, it returns
// the last page.
func (l *listing) readPage(ctx context.Context, cursor string) (*crawlPage, error) {
	requested := l.requestTime(l.job.Bucket)
	for range maxEmptyPages {
		if err := l.renewOldLease(ctx); err != nil {
			return nil, err
		}
		found, err := l.listPage(ctx, l.job.Bucket, l.prefix, cursor, l.opts.CrawlPage)
		if err != nil {
			return nil, err
		}
		if found.Cursor != "" && found.Cursor == cursor {
			return nil, errDisorder("it repeats the page behind key %q", domain.Shorten(l.last))
		}
		if len(found.Objects) == 0 && found.Cursor != "" {
			cursor = found.Cursor
			continue
		}
		for i := range found.Objects {
			switch key := found.Objects[i].Key; {
			case key <= l.last:
				return nil, errDisorder("key %q comes after key %q", domain.Shorten(key), domain.Shorten(l.last))
			case !strings.HasPrefix(key, l.prefix):
				return nil, errDisorder("key %q is without prefix %q", domain.Shorten(key), domain.Shorten(l.prefix))
			default:
				l.last = key
			}
		}
		return &crawlPage{requested: requested, cursor: cursor, objects: found.Objects, next: found.Cursor}, nil
	}
	return nil, errDisorder("%d pages in a row are empty", maxEmptyPages)
}

// listPage lists a page of a store. It fails with Unavailable after listTimeout.
func (s *Service) listPage(ctx context.Context, bucket, prefix, cursor string, limit int) (repository.SourcePage, error) {
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	page, err := s.Source.List(limited, bucket, prefix, cursor, limit)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return page, domain.Errorf(domain.Unavailable, "the store listed no page within %v: %w", listTimeout, err)
	}
	return page, err
}

// requestTime returns the time of a request to the bucket's store. Events from the response have
// this time, minus [domain.ClockMargin].
func (s *Service) requestTime(bucket string) time.Time {
	now := s.opts.Clock().UTC()
	if s.opts.HasClock != nil && s.opts.HasClock(bucket) {
		return now.Add(domain.ClockMargin) // compensates for the margin that domain.responseTime subtracts
	}
	return now
}
