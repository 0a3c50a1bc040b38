package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	objectsPath     = "/v1/objects"
	maxObjectsPage  = 1000     // maximum number of rows in a response
	maxObjectAnswer = 64 << 20 // bytes
)

// An Object is a row of the ledger: the creation or deletion of an object.
// Unknown values are nil.
type Object struct {
	ID               string          `json:"id"`
	Bucket           string          `json:"bucket"`
	Key              string          `json:"key"`
	VersionID        string          `json:"versionId"`
	Sequencer        string          `json:"sequencer"`
	EventType        string          `json:"eventType"`
	EventTime        *time.Time      `json:"eventTime"`
	Size             *int64          `json:"size"`
	ETag             *string         `json:"eTag"`
	SHA256           *string         `json:"sha256"`
	LastModifiedDate *time.Time      `json:"lastModifiedDate"`
	StorageClass     *string         `json:"storageClass"`
	ArchiveStatus    *string         `json:"archiveStatus"`
	Reason           *string         `json:"reason"`
	IngestID         *string         `json:"ingestId"`
	Attributes       json.RawMessage `json:"attributes"`
	IsDeleteMarker   bool            `json:"isDeleteMarker"`
	IsCurrentState   bool            `json:"isCurrentState"`
	IsAccessible     bool            `json:"isAccessible"`
	IsDoubtful       bool            `json:"isDoubtful"`
	Duplicates       int64           `json:"numberDuplicateEvents"`
}

// An ObjectPair contains the row of an object's creation and the row of the
// next deletion. Either may be nil.
type ObjectPair struct {
	Created    *Object `json:"created"`
	Deleted    *Object `json:"deleted"`
	Duplicates int64   `json:"numberDuplicateEvents"`
	Reordered  int64   `json:"numberReordered"`
}

// Objects returns up to limit ledger rows that params select, each as the hub's
// JSON, and whether more rows may exist.
func (c *Client) Objects(ctx context.Context, params url.Values, limit int) ([]json.RawMessage, bool, error) {
	params.Set("limit", strconv.Itoa(min(limit, maxObjectsPage)))
	return c.objectPages(ctx, objectsPath+"?"+params.Encode(), limit)
}

// ObjectHistory returns up to limit ledger rows of one object, newest first, and
// whether more rows may exist. id is the id of any row of the object.
func (c *Client) ObjectHistory(ctx context.Context, id string, limit int) ([]json.RawMessage, bool, error) {
	path := objectsPath + "/" + url.PathEscape(id) + "/history"
	return c.objectPages(ctx, fmt.Sprintf("%s?limit=%d", path, min(limit, maxObjectsPage)), limit)
}

// ObjectPairs returns the pairs of creation and deletion of the object that the
// row id describes, newest first.
func (c *Client) ObjectPairs(ctx context.Context, id string) ([]json.RawMessage, error) {
	var answer objectPage
	err := c.getObject(ctx, objectsPath+"/"+url.PathEscape(id)+"/history?paired=true", &answer)
	return answer.Results, err
}

// An objectPage is a page of rows or pairs, with the link to the next page.
type objectPage struct {
	Results []json.RawMessage `json:"results"`
	Links   struct {
		Next string `json:"next"`
	} `json:"links"`
}

// objectPages reads pages until it has limit elements or the last page.
func (c *Client) objectPages(ctx context.Context, path string, limit int) (all []json.RawMessage, hasMore bool, err error) {
	for {
		var page objectPage
		if err := c.getObject(ctx, path, &page); err != nil {
			return nil, false, err
		}
		all, path = append(all, page.Results...), page.Links.Next
		switch {
		case len(all) >= limit:
			return all[:limit], len(all) > limit || path != "", nil
		case path == "":
			return all, false, nil
		case !strings.HasPrefix(path, objectsPath):
			return nil, false, fmt.Errorf("the answer cannot be read: its link to the next page is %q", path)
		}
	}
}

// Object returns a ledger row as the hub's JSON.
func (c *Client) Object(ctx context.Context, id string) (row json.RawMessage, err error) {
	err = c.getObject(ctx, objectsPath+"/"+url.PathEscape(id), &row)
	return row, err
}

// getObject sends a GET request and decodes the response into v.
func (c *Client) getObject(ctx context.Context, path string, v any) error {
	return c.objectCall(ctx, http.MethodGet, path, nil, v)
}

func (c *Client) objectCall(ctx context.Context, method, path string, body []byte, v any) error {
	resp, err := c.Do(ctx, method, path, "", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxObjectAnswer))
	if err != nil {
		return c.Unreachable(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}
