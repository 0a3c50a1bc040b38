package hubclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// An ObjectJob describes a job of the ledger: a crawl or a patch.
type ObjectJob struct {
	ID      string     `json:"id"`
	Bucket  string     `json:"bucket"`
	State   string     `json:"state"` // running, completed, failed or stopped
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

// URL paths of the ledger's jobs.
const (
	CrawlsPath  = objectsPath + "/crawls"
	PatchesPath = objectsPath + "/patches"
)

// StartCrawl starts a job that compares the ledger with the object store. The
// job covers the keys of a bucket that begin with prefix.
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

// StartPatch starts a job that applies a patch to all ledger rows that params
// select.
func (c *Client) StartPatch(ctx context.Context, params url.Values, patch []byte) (*ObjectJob, error) {
	job := new(ObjectJob)
	return job, c.objectCall(ctx, http.MethodPost, PatchesPath+"?"+params.Encode(), patch, job)
}

// ObjectJob returns the current state of a ledger job. path is [CrawlsPath] or
// [PatchesPath].
func (c *Client) ObjectJob(ctx context.Context, path, id string) (*ObjectJob, error) {
	job := new(ObjectJob)
	return job, c.getObject(ctx, path+"/"+url.PathEscape(id), job)
}
