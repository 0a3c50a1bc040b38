package hubclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// An ObjectJob is what the hub says of a job on objects.
type ObjectJob struct {
	ID      string     `json:"id"`
	Bucket  string     `json:"bucket"`
	State   string     `json:"state"` // running, and then completed, failed or stopped
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Counts  struct {
		Seen      int64 `json:"seen"`
		Created   int64 `json:"created"`
		Deleted   int64 `json:"deleted"`
		Changed   int64 `json:"changed"`
		Unchanged int64 `json:"unchanged"`
		Refused   int64 `json:"refused"`
	} `json:"counts"`
	Report   string `json:"report,omitempty"`
	Failures []struct {
		Object string `json:"object"`
		Reason string `json:"reason"`
	} `json:"failures,omitempty"`
}

// The paths of jobs on objects.
const (
	CrawlsPath  = objectsPath + "/crawls"
	PatchesPath = objectsPath + "/patches"
)

// StartCrawl has the hub compare the objects of a bucket whose keys begin with prefix with those of its
// store.
func (c *Client) StartCrawl(ctx context.Context, bucket, prefix string) (*ObjectJob, error) {
	wanted := map[string]string{"bucket": bucket}
	if prefix != "" {
		wanted["prefix"] = prefix
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	crawl := new(ObjectJob)
	return crawl, c.objectCall(ctx, http.MethodPost, CrawlsPath, body, crawl)
}

// StartPatch has the hub change all rows that have what the parameters ask for.
func (c *Client) StartPatch(ctx context.Context, params url.Values, patch []byte) (*ObjectJob, error) {
	job := new(ObjectJob)
	return job, c.objectCall(ctx, http.MethodPost, PatchesPath+"?"+params.Encode(), patch, job)
}

// ObjectJob returns a job as it is now. path is that of its kind.
func (c *Client) ObjectJob(ctx context.Context, path, id string) (*ObjectJob, error) {
	job := new(ObjectJob)
	return job, c.getObject(ctx, path+"/"+url.PathEscape(id), job)
}
