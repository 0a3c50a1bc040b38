package hubclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// A Crawl is what the hub says of one.
type Crawl struct {
	ID      string     `json:"id"`
	Bucket  string     `json:"bucket"`
	State   string     `json:"state"` // running, and then completed, failed or stopped
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Counts  struct {
		Seen      int64 `json:"seen"`
		Created   int64 `json:"created"`
		Deleted   int64 `json:"deleted"`
		Unchanged int64 `json:"unchanged"`
		Refused   int64 `json:"refused"`
	} `json:"counts"`
	Report string `json:"report,omitempty"`
}

const crawlsPath = objectsPath + "/crawls"

// StartCrawl has the hub compare the objects of a bucket whose keys begin with prefix with those of its
// store.
func (c *Client) StartCrawl(ctx context.Context, bucket, prefix string) (*Crawl, error) {
	wanted := map[string]string{"bucket": bucket}
	if prefix != "" {
		wanted["prefix"] = prefix
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	crawl := new(Crawl)
	return crawl, c.objectCall(ctx, http.MethodPost, crawlsPath, body, crawl)
}

// Crawl returns a crawl as it is now.
func (c *Client) Crawl(ctx context.Context, id string) (*Crawl, error) {
	crawl := new(Crawl)
	return crawl, c.getObject(ctx, crawlsPath+"/"+url.PathEscape(id), crawl)
}
