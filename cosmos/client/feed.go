package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/domain"
)

// A Feed reads the change feed of a container: the newest version of each document that was created or
// changed. The changes of a logical partition are in order. Deletions are not included.
type Feed struct {
	call      *Call
	container *azcosmos.ContainerClient
	since     time.Time
	token     string

	drained time.Time            // all changes before this time were read when the feed last had no more changes
	read    map[string]time.Time // since drained, by the lower end of its range of keys: when the last document of a page was stored
}

// Feed returns a feed that continues at the token of an earlier one. If that has read nothing yet, or
// if token is empty, it begins with the changes after since, by the clock of the account, in full
// seconds.
func (c *Call) Feed(container *azcosmos.ContainerClient, since time.Time, token string) *Feed {
	return &Feed{call: c, container: container, since: since, token: token}
}

// ErrFeedLost reports that a feed cannot continue at its token: the token belongs to another container,
// or the container no longer knows the position. The caller reads all documents again.
var ErrFeedLost = errors.New("the change feed cannot continue where it was")

// Next returns the next changes, up to size documents. An empty result means that the feed has no more
// changes now.
func (f *Feed) Next(ctx context.Context, size int) ([][]byte, error) {
	var items [][]byte
	var lost error
	asked := f.call.client.opts.Clock()
	err := f.call.sendRequest(ctx, f.container, false, func(ctx context.Context) (float32, error) {
		opts := &azcosmos.ChangeFeedOptions{
			MaxItemCount: int32(min(max(size, 1), 1000)),
			StartFrom:    &f.since,
			FeedRange:    &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"},
		}
		if f.token != "" {
			opts.Continuation = &f.token
		}
		resp, err := f.container.ReadChangeFeed(ctx, opts)
		if isLostFeed(err) {
			lost = domain.Errorf(domain.Unavailable, "%w: %w", ErrFeedLost, FailureOf(err))
			return resp.RequestCharge, nil
		}
		if err == nil {
			items = resp.Items
			f.noteRead(&resp, asked)
			if resp.ContinuationToken != "" {
				f.token = resp.ContinuationToken
			}
		}
		return resp.RequestCharge, err
	})
	if err == nil {
		err = lost
	}
	return items, err
}

// isLostFeed reports whether a feed that failed with err would fail again in the same way. azcosmos has
// no error value for the token of another container, after a container was restored or created again.
func isLostFeed(err error) bool {
	if err == nil {
		return false
	}
	return errors.Is(err, azcosmos.ErrFeedRangeUnresolved) || strings.Contains(err.Error(), "the token was issued for a different container") ||
		FailureOf(err).status == http.StatusBadRequest
}

// noteRead records up to which time changes were read. The changes of a range of keys are in order.
func (f *Feed) noteRead(page *azcosmos.ChangeFeedResponse, asked time.Time) {
	switch {
	case len(page.Items) == 0:
		f.drained, f.read = asked, nil
	case page.FeedRange != nil:
		if f.read == nil {
			f.read = make(map[string]time.Time)
		}
		f.read[page.FeedRange.MinInclusive] = ModifiedAt(page.Items[len(page.Items)-1])
	}
}

// ReadUpTo returns a time before which all changes were read; zero: unknown. It is by the clock of the
// client while the feed has no more changes, and otherwise by that of the account.
func (f *Feed) ReadUpTo() time.Time {
	if len(f.read) == 0 || len(f.read) < strings.Count(f.token, `"minInclusive"`) {
		return f.drained
	}
	least := time.Time{}
	for _, t := range f.read {
		if least.IsZero() || t.Before(least) {
			least = t
		}
	}
	if least.Before(f.drained) {
		return f.drained
	}
	return least
}

// Token returns the position at which the feed continues.
func (f *Feed) Token() string { return f.token }

// UseCall charges the following requests to the budget of c.
func (f *Feed) UseCall(c *Call) { f.call = c }

// ModifiedAt returns when a document was last stored, by the clock of the account, in full seconds;
// zero if the document does not have the time.
func ModifiedAt(doc []byte) time.Time {
	var stamped struct {
		Timestamp int64 `json:"_ts"`
	}
	if json.Unmarshal(doc, &stamped) != nil || stamped.Timestamp == 0 {
		return time.Time{}
	}
	return time.Unix(stamped.Timestamp, 0).UTC()
}
