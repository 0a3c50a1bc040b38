// Package source joins the stores that a node may read to one repository.Source. The stores themselves
// are in the packages below it: S3, Azure Blob Storage, and a folder in the layout of package content.
//
//	Stores ─▶ the store of a bucket ─▶ adapter ─▶ requests
//	  └ checks the arguments of the caller and the results of the adapter
//
// An adapter only translates. The rules for all stores are checked here: the order of a listing, the
// time limit of a call or a read of content, and the options of a link.
package source

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Store is a repository.Source, and the names of the buckets that it serves.
type Store struct {
	Buckets string // the name of a bucket, or a prefix of names followed by an asterisk
	repository.Source
}

// hasBucket reports whether the store has a bucket.
func (s *Store) hasBucket(bucket string) bool {
	if prefix, isPattern := strings.CutSuffix(s.Buckets, "*"); isPattern {
		return strings.HasPrefix(bucket, prefix)
	}
	return bucket == s.Buckets
}

// Stores are the stores of a node. A call goes to the first store that has the bucket. Stores are safe
// for concurrent use.
type Stores []Store

var _ repository.Source = Stores(nil)

// callTimeout is the time limit for a call, with its retries.
const callTimeout = time.Minute

// callStore calls the store of a bucket. verb names the call in errors.
func (s Stores) callStore(ctx context.Context, verb, bucket string, call func(context.Context, repository.Source) error) error {
	store := s.storeOf(bucket)
	if store == nil {
		return fmt.Errorf("%s bucket %s: %w", verb, bucket, repository.ErrNoStore)
	}
	inner, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := call(inner, store)
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		err = domain.Errorf(domain.Unavailable, "no response within %s", callTimeout)
	}
	if err != nil {
		return fmt.Errorf("%s bucket %s: %w", verb, bucket, err)
	}
	return nil
}

// storeOf returns the store of a bucket, or nil.
func (s Stores) storeOf(bucket string) repository.Source {
	for i := range s {
		if s[i].hasBucket(bucket) {
			return s[i].Source
		}
	}
	return nil
}

// A cursor is the position at which a page of a listing begins.
type cursor struct {
	After string `json:"after"` // the last key of the previous pages
	Inner string `json:"inner"` // the cursor of the adapter
}

func (c cursor) encode() (string, error) {
	text, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text), err
}

func decodeCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, domain.Errorf(domain.Invalid, "cursor %q: want one of a previous page", domain.Shorten(s))
	}
	return c, nil
}

// List implements [repository.Source].
func (s Stores) List(ctx context.Context, bucket, prefix, from string, limit int) (page repository.SourcePage, err error) {
	if limit < 1 {
		return page, domain.Errorf(domain.Invalid, "list bucket %s: want a limit of at least 1, got %d", bucket, limit)
	}
	begin, err := decodeCursor(from)
	if err != nil {
		return page, err
	}
	err = s.callStore(ctx, "list", bucket, func(ctx context.Context, store repository.Source) (err error) {
		if page, err = store.List(ctx, bucket, prefix, begin.Inner, limit); err != nil {
			return err
		}
		end, err := checkPage(&page, begin, prefix, limit)
		if err == nil && page.Cursor != "" {
			page.Cursor, err = end.encode()
		}
		return err
	})
	if err != nil {
		return repository.SourcePage{}, err
	}
	return page, nil
}

// checkPage checks the keys of a page, and returns the position of the next page. If a key out of order
// were accepted, a crawl would conclude that objects were deleted.
func checkPage(page *repository.SourcePage, begin cursor, prefix string, limit int) (cursor, error) {
	end := cursor{begin.After, page.Cursor}
	for i := range page.Objects {
		key := page.Objects[i].Key
		switch {
		case !strings.HasPrefix(key, prefix):
			return end, domain.Errorf(domain.Unavailable, "the store lists %q, which has another prefix", domain.Shorten(key))
		case key <= end.After:
			return end, domain.Errorf(domain.Unavailable, "the store lists %q after %q: it repeats a page, or does not list in the order of keys", domain.Shorten(key), domain.Shorten(end.After))
		}
		end.After = key
	}
	switch {
	case len(page.Objects) > limit:
		return end, domain.Errorf(domain.Unavailable, "the store lists %d objects, but the request had a limit of %d", len(page.Objects), limit)
	case page.Cursor != "" && end == begin:
		return end, domain.Errorf(domain.Unavailable, "the store repeats an empty page")
	}
	return end, nil
}

// Stat implements [repository.Source].
func (s Stores) Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (object repository.SourceObject, err error) {
	err = s.callStore(ctx, "look in", name.Bucket(), func(ctx context.Context, store repository.Source) (err error) {
		object, err = store.Stat(ctx, name, version)
		return err
	})
	return object, err
}

// Link implements [repository.Source].
func (s Stores) Link(ctx context.Context, name domain.ObjectName, version domain.VersionID, opts repository.LinkOptions) (link string, err error) {
	if opts.Expires < time.Second || opts.Expires > repository.MaxLinkTime {
		return "", domain.Errorf(domain.Invalid, "link: want a time from 1s to %s, got %s", repository.MaxLinkTime, opts.Expires)
	}
	for header, value := range map[string]string{"Content-Disposition": opts.Disposition, "Content-Type": opts.ContentType, "Content-Encoding": opts.ContentEncoding} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return "", domain.Errorf(domain.Invalid, "link: %s: want no control characters", header)
		}
	}
	err = s.callStore(ctx, "link to", name.Bucket(), func(ctx context.Context, store repository.Source) (err error) {
		link, err = store.Link(ctx, name, version, opts)
		return err
	})
	return link, err
}
