package engine

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A FeedRequest requests one page of the change feed. The feed contains the newest version of each created or changed
// document, in the order of the changes. It does not contain deletions.
type FeedRequest struct {
	Partition   Partition // the only partition to read, if Scoped is set
	Scoped      bool
	Prefix      Partition // see QueryRequest
	Range       *Range
	After       uint64    // number of the last change that the client received
	FromNow     bool      // return only changes that are made after the request
	Since       time.Time // return only changes after this second; zero returns all
	MaxItems    int       // maximum number of documents; -1 for no limit
	Consistency Consistency
}

// A FeedPage is one page of the change feed. JSON is nil if there are no changes.
type FeedPage struct {
	JSON    []byte
	Count   int
	Last    uint64 // position at which the next page starts
	Charge  Charge
	Session uint64
}

// ChangeFeed reads one page of the change feed. It fails if ctx ends.
func (e *Engine) ChangeFeed(ctx context.Context, c *Container, q FeedRequest) (FeedPage, error) {
	var page FeedPage
	now := e.expiryTime(c)
	err := e.viewState(q.Consistency, func(r disk.Reader) error {
		f := feedReader{q: q, c: c, r: r, now: now, epks: map[Partition]bool{}}
		err := f.readPage(ctx)
		page = f.page
		return err
	})
	page.Charge = max(page.Charge, requestUnit)
	return page, err
}

type feedReader struct {
	q    FeedRequest
	c    *Container
	r    disk.Reader
	now  time.Time
	epks map[Partition]bool // tells for each visited partition whether it is in the requested range
	last uint64             // number of the newest change on the page
	page FeedPage
}

func (f *feedReader) readPage(ctx context.Context) error {
	f.page.Session = decodeNumber(f.r.Get(counterKey))
	f.page.Last = f.page.Session // the next page starts here, unless this page becomes full
	if f.q.FromNow {
		return nil
	}
	if f.q.After > f.page.Session { // the client's position is newer than this state
		f.page.Last = f.q.After
		return nil
	}
	var err error
	all := containerPrefix('L', f.c.number)
	f.r.Scan(changeKey(f.c.number, f.q.After+1), endOfPrefix(all), func(key, value []byte) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		version := binary.BigEndian.Uint64(key[len(all):])
		var more bool
		if more, err = f.addChange(version, value); !more {
			return false
		}
		return true
	})
	if f.page.Count > 0 {
		f.page.JSON = append(f.page.JSON, `],"_count":`...)
		f.page.JSON = append(strconv.AppendInt(f.page.JSON, int64(f.page.Count), 10), '}')
	}
	return err
}

// addChange adds a changed document if the request includes it. It returns false if the page is full, so that the next
// page returns the change.
func (f *feedReader) addChange(version uint64, value []byte) (bool, error) {
	if len(value) < 8 {
		return false, f.c.newDamageError(storedDocument{})
	}
	pk := Partition(value[8:])
	if !f.isRequested(pk) {
		return true, nil
	}
	key := documentKey(f.c.number, pk, decodeNumber(value[:8]))
	s := readStored(key, f.r.Get(key))
	if s.version != version {
		return false, f.c.newDamageError(s)
	}
	if f.c.hasExpired(s, f.now) || !f.q.Since.IsZero() && s.changed <= f.q.Since.Unix() {
		return true, nil
	}
	full := f.q.MaxItems >= 0 && f.page.Count >= f.q.MaxItems || f.page.Count > 0 && len(f.page.JSON)+s.size > maxPage
	if full {
		f.page.Last = f.last
		return false, nil
	}
	doc, err := s.readJSON(f.r, f.c)
	if err != nil {
		return false, err
	}
	if f.page.Count == 0 {
		f.page.JSON = append(f.page.JSON, `{"_rid":"`+f.c.RID+`","Documents":[`...)
	} else {
		f.page.JSON = append(f.page.JSON, ',')
	}
	f.page.JSON = append(f.page.JSON, doc[:len(doc)-1]...)
	f.page.JSON = append(f.page.JSON, `,"_lsn":`...)
	f.page.JSON = append(strconv.AppendUint(f.page.JSON, version, 10), '}')
	f.page.Count++
	f.page.Charge += readCharge(s.size)
	f.last = version
	return true, nil
}

func (f *feedReader) isRequested(pk Partition) bool {
	if f.q.Scoped && pk != f.q.Partition || !strings.HasPrefix(string(pk), string(f.q.Prefix)) {
		return false
	}
	if f.q.Range == nil || f.q.Range.isAll() {
		return true
	}
	in, known := f.epks[pk]
	if !known {
		in = f.q.Range.hasKey(f.c.effectiveKey(pk))
		f.epks[pk] = in
	}
	return in
}
