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
// changed. The changes of a logical partition are in order. Deletions are not in the feed.
type Feed struct {
	call      *Call
	container *azcosmos.ContainerClient
	since     time.Time
	token     string

	drained time.Time            // time of the last request that returned no more changes; all changes before it were read
	read    map[string]time.Time // time of the last change read, by lower bound of the key range; cleared when drained is set
}

// Feed returns a feed that continues at the token of an earlier feed. If the earlier feed read nothing,
// or if token is empty, the feed begins with the changes after since. since is compared with the clock
// of the account, in full seconds.
func (c *Call) Feed(container *azcosmos.ContainerClient, since time.Time, token string) *Feed {
	return &Feed{call: c, container: container, since: since, token: token}
}

// ErrFeedLost reports that a feed cannot continue at its token: the token belongs to another container,
// or its position no longer exists. The caller must read all documents again.
var ErrFeedLost = errors.New("the change feed cannot continue where it was")

// Next returns the next changes, up to size documents. An empty result means that the feed has no more
// changes now.
func (f *Feed) Next(ctx context.Context, size int) ([][]byte, error) {
	var items [][]byte
	var lost error
	sent := f.call.client.opts.Clock()
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
			f.noteRead(&resp, sent)
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

// isLostFeed reports whether err means that the feed cannot continue at its token. azcosmos has no error
// value for a token of another container, which a feed has after its container was restored or created
// again.
func isLostFeed(err error) bool {
	if err == nil {
		return false
	}
	return errors.Is(err, azcosmos.ErrFeedRangeUnresolved) || strings.Contains(err.Error(), "the token was issued for a different container") ||
		FailureOf(err).status == http.StatusBadRequest
}

// noteRead records the time up to which changes were read. Within a range of keys, changes are in order.
func (f *Feed) noteRead(page *azcosmos.ChangeFeedResponse, sent time.Time) {
	switch {
	case len(page.Items) == 0:
		f.drained, f.read = sent, nil
	case page.FeedRange != nil:
		if f.read == nil {
			f.read = make(map[string]time.Time)
		}
		f.read[page.FeedRange.MinInclusive] = ModifiedAt(page.Items[len(page.Items)-1])
	}
}

// ReadUpTo returns a time before which all changes were read, or the zero time if no such time is known.
// The result is either the time of the last request that returned no changes, by the clock of the client,
// or the time of a change, by the clock of the account.
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

// UseCall makes the following requests use the budget of c.
func (f *Feed) UseCall(c *Call) { f.call = c }

// ModifiedAt returns the time of the last write of a document, by the clock of the account, in full
// seconds. It returns the zero time if the document does not contain the time.
func ModifiedAt(doc []byte) time.Time {
	var stamped struct {
		Timestamp int64 `json:"_ts"`
	}
	if json.Unmarshal(doc, &stamped) != nil || stamped.Timestamp == 0 {
		return time.Time{}
	}
	return time.Unix(stamped.Timestamp, 0).UTC()
}
