package hubclient

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// An ObjectLink contains a link to the content of an object, or the reason why
// there is no link.
type ObjectLink struct {
	URL     *string    `json:"link"`
	Expires *time.Time `json:"expires,omitempty"`
	Reason  string     `json:"reason,omitempty"`
}

// ObjectLink returns a link to the content that a ledger row describes. The
// link expires after expires; if expires is 0, the hub chooses.
func (c *Client) ObjectLink(ctx context.Context, id string, expires time.Duration, isAttachment bool) (*ObjectLink, error) {
	parameters := url.Values{}
	if expires > 0 {
		parameters.Set("expires", fmt.Sprint(int64(expires/time.Second)))
	}
	if isAttachment {
		parameters.Set("disposition", "attachment")
	}
	link := new(ObjectLink)
	err := c.getObject(ctx, objectsPath+"/"+url.PathEscape(id)+"/link?"+parameters.Encode(), link)
	return link, err
}
