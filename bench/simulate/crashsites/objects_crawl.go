//go:build unix

package crashsites

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const (
	crawledKeys = 24
	crawledPage = 5 // number of objects on a page of the crawled store
)

// A crawledKey says how the ledger and the crawled store differ in one object before a crawl.
type crawledKey struct {
	name     string
	isKnown  bool
	isListed bool
	hasSize  bool // the listing contains the size of the object, and the ledger does not
}

// crawledBucketKeys returns the keys of each crawled bucket. They cover every kind of difference.
func crawledBucketKeys() (all []crawledKey) {
	for i := range crawledKeys {
		all = append(all, crawledKey{fmt.Sprintf("key-%02d", i), i%3 != 0, i%3 != 2, i%2 == 0})
	}
	return all
}

// A sameSource is a store whose buckets all contain the same objects.
type sameSource struct{ *memory.Source }

const sameBucket = "any"

// crawledSource returns the crawled store. Its objects are the same in each process of a node.
func crawledSource() sameSource {
	s := sameSource{memory.NewSource(sameBucket)}
	for _, k := range crawledBucketKeys() {
		if !k.isListed {
			continue
		}
		o := repository.SourceObject{Key: k.name}
		if k.hasSize {
			o.Size = new(int64)
		}
		s.Put(sameBucket, o)
	}
	return s
}

// List implements repository.Source.
func (s sameSource) List(ctx context.Context, _, prefix, cursor string, limit int) (repository.SourcePage, error) {
	return s.Source.List(ctx, sameBucket, prefix, cursor, limit)
}

// A crawlClient crawls buckets, one after the other, and crawls each bucket twice.
type crawlClient struct {
	w      *crashRun
	number int
}

func (c *crawlClient) crawlUntil(ctx context.Context, stop <-chan struct{}) error {
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		bucket := fmt.Sprintf("crawled-%d-%d", c.number, n)
		if err := c.crawlBucket(ctx, bucket); err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
	}
	return ctx.Err()
}

// crawlBucket crawls a bucket twice. It returns an error unless the first crawl adds one row for each difference, and
// the second crawl finds no difference.
func (c *crawlClient) crawlBucket(ctx context.Context, bucket string) error {
	keys := crawledBucketKeys()
	const events = objectRows // the document of the object is full, so a row of the crawl moves an older row to a separate document
	var message []objectEvent
	listed := int64(0)
	for _, k := range keys {
		for i := 1; i <= events && k.isKnown; i++ {
			message = append(message, objectEvent{k.name, fmt.Sprintf("C@%04X", 16*i)})
		}
		if k.isListed {
			listed++
		}
	}
	if err := c.w.sendEvents(ctx, "/"+bucket, message, func() {}); err != nil {
		return err
	}
	for _, isFirst := range []bool{true, false} {
		found, err := c.w.awaitJob(ctx, "/"+bucket+"/crawls", nil)
		if err != nil {
			return err
		}
		counts := found.Counts
		if found.State != domain.JobCompleted || counts.Seen != listed || !isFirst && (counts != domain.JobCounts{Seen: listed, Unchanged: listed}) {
			return fmt.Errorf("L8: the crawl is %+v, want one that has listed %d objects; it was the first one: %t", found, listed, isFirst)
		}
		stored, err := c.w.objectsOf(ctx, bucket)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if err := k.compareWith(stored[k.name], events); err != nil {
				return fmt.Errorf("object %s: %w", k.name, err)
			}
		}
	}
	return nil
}

// compareWith compares an object with the expected result of a message and a crawl.
func (k *crawledKey) compareWith(o storedObject, events int) error {
	rows := 0
	if k.isKnown {
		rows = events
	}
	if !k.isKnown || !k.isListed || k.hasSize {
		rows++
	}
	if len(o.Duplicates) != rows || (o.Current != "") != k.isListed {
		return fmt.Errorf("L3: it has %d rows and the current row %q; want %d rows, and a current one: %t", len(o.Duplicates), o.Current, rows, k.isListed)
	}
	for row, n := range o.Duplicates {
		if n > 0 && len(row) > len("Created 0010") {
			return fmt.Errorf("L5: row %q of the crawl has %d duplicates", row, n)
		}
	}
	return nil
}
