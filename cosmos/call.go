package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/domain"
)

// A call is one call of a port, or one piece of maintenance. Its requests to Cosmos
// share one budget of retries, and are counted and metered in one place. It is safe
// for concurrent use.
type call struct {
	r    *Repository
	name string

	mu      sync.Mutex
	retries int  // left
	doubt   bool // a write may have been carried out although its answer does not say so
}

// The budget of a call.
const (
	callTimeout = 5 * time.Second // of one request; Cosmos itself gives up after 5 s
	minBackoff  = 4 * time.Millisecond
	maxBackoff  = time.Second
)

// addRetries adds to the budget of a call that turns out to be large.
func (c *call) addRetries(retries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.r.opts.Retries > 0 {
		c.retries += retries
	}
}

func (r *Repository) begin(name string) *call {
	return &call{r: r, name: name, retries: r.opts.Retries}
}

// pause takes one retry from the budget and waits before it, with full jitter.
// It reports false if the budget or the context has come to its end, or will have
// before after is over: the caller is better told at once.
func (c *call) pause(ctx context.Context, after time.Duration) bool {
	c.mu.Lock()
	used := max(c.r.opts.Retries-c.retries, 0)
	c.retries--
	left := c.retries
	c.mu.Unlock()
	if end, ok := ctx.Deadline(); left < 0 || ok && time.Until(end) < after {
		return false
	}
	c.r.metrics.retries.WithLabelValues(c.name).Inc()
	backoff := min(minBackoff<<min(used, 10), maxBackoff)
	return sleep(ctx, after+c.r.jitter(backoff))
}

// sleep returns true after d, or false once ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errStale: a document that the call has read has changed since. The call retries
// from fresh reads.
var errStale = errors.New("the store moved on")

// errNotYetVisible: a document that a head or gate refers to was not found. It counts
// as a stale read until it repeats, then as damage.
var errNotYetVisible = fmt.Errorf("what must be there is missing: %w", errStale)

// maxMissing consecutive misses turn a stale read into damage.
const maxMissing = 8

// inDoubt reports whether a write of the call may have been applied although its
// reply does not say so.
func (c *call) inDoubt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubt
}

// outcome returns err with the kind that the caller can act on. If a write of the call
// may have been applied, an error that would mean that it was not becomes Uncertain.
func (c *call) outcome(what string, err error) error {
	err = classified(what, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Unknown, domain.NewerFormat:
		if err != nil && c.doubt {
			return domain.Errorf(domain.Uncertain, "%w", err)
		}
	default:
	}
	return err
}

// retry runs try until it returns an error other than errStale, or nil. If the budget
// is used up before that, it fails with Busy.
func (c *call) retry(ctx context.Context, try func() error) error {
	missing := 0 // times in a row
	for {
		err := try()
		if !errors.Is(err, errStale) {
			return err
		}
		missing++
		if !errors.Is(err, errNotYetVisible) {
			missing = 0
		}
		if !c.pause(ctx, 0) {
			if ctx.Err() != nil {
				return domain.Errorf(domain.Unavailable, "%s: %w", c.name, ctx.Err())
			}
			if fault := c.r.suspectContainers(ctx); fault != nil {
				return domain.Errorf(domain.Unavailable, "%s: %w", c.name, fault)
			}
			if missing >= maxMissing {
				return domain.Errorf(domain.Damaged, "%s: %w, in %d attempts in a row", c.name, err, missing)
			}
			return domain.Errorf(domain.Busy, "%s: gave up after %d retries against other writers or stale reads: %w", c.name, c.r.opts.Retries, err)
		}
	}
}

// do makes a call, again and again while that makes sense. write says whether
// the call changes something: then an outcome that is still unknown in the end
// is Uncertain.
func (c *call) do(ctx context.Context, container *azcosmos.ContainerClient, write bool, call func(context.Context) (float32, error)) error {
	uncertain := false
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		began := time.Now()
		charge, err := call(attempt)
		cancel()
		c.r.metrics.called(c.name, container.ID(), err, charge, time.Since(began))
		if err == nil {
			return nil
		}
		f := failureOf(err)
		if write && f.happened() {
			uncertain = true
			c.mu.Lock()
			c.doubt = true
			c.mu.Unlock()
		}
		if f.retriable() && ctx.Err() == nil && c.pause(ctx, f.after) {
			continue
		}
		switch {
		case !f.retriable():
			if f.mayBeContainers() {
				if fault := c.r.suspectContainers(ctx); fault != nil {
					return domain.Errorf(domain.Unavailable, "%s: %w (%v)", c.name, fault, f)
				}
			}
			return err // its status says what it is
		case uncertain:
			return domain.Errorf(domain.Uncertain, "%s: it is not known whether a write to %s was carried out: %w", c.name, container.ID(), f)
		case ctx.Err() != nil:
			return domain.Errorf(domain.Unavailable, "%s: %w", c.name, context.Cause(ctx))
		}
		return domain.Errorf(f.kind(), "%s: gave up on %s: %w", c.name, container.ID(), f)
	}
}

// read fetches an item and returns its etag.
func (c *call) read(ctx context.Context, container *azcosmos.ContainerClient, key, id string, item any) (azcore.ETag, error) {
	var resp azcosmos.ItemResponse
	err := c.do(ctx, container, false, func(ctx context.Context) (charge float32, err error) {
		resp, err = container.ReadItem(ctx, azcosmos.NewPartitionKeyString(key), id, nil)
		return resp.RequestCharge, err
	})
	if err == nil {
		err = c.decode(resp.Value, key, item)
	}
	return resp.ETag, err
}

// put creates an item, or replaces the one that has etag. It returns the new etag.
func (c *call) put(ctx context.Context, container *azcosmos.ContainerClient, key, id string, etag azcore.ETag, item any) (azcore.ETag, error) {
	doc, pk := encoded(item), azcosmos.NewPartitionKeyString(key)
	var written azcore.ETag
	err := c.do(ctx, container, true, func(ctx context.Context) (float32, error) {
		var resp azcosmos.ItemResponse
		var err error
		if etag == "" {
			resp, err = container.CreateItem(ctx, pk, doc, nil)
		} else {
			resp, err = container.ReplaceItem(ctx, pk, id, doc, &azcosmos.ItemOptions{IfMatchEtag: &etag})
		}
		written = resp.ETag
		return resp.RequestCharge, err
	})
	return written, err
}

// remove deletes the item that has etag.
func (c *call) remove(ctx context.Context, container *azcosmos.ContainerClient, key, id string, etag azcore.ETag) error {
	return c.do(ctx, container, true, func(ctx context.Context) (float32, error) {
		resp, err := container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(key), id, &azcosmos.ItemOptions{IfMatchEtag: &etag})
		return resp.RequestCharge, err
	})
}

// patch changes fields of an item and returns what it is afterwards.
func (c *call) patch(ctx context.Context, container *azcosmos.ContainerClient, key, id string, ops azcosmos.PatchOperations, item any) error {
	var resp azcosmos.ItemResponse
	err := c.do(ctx, container, true, func(ctx context.Context) (charge float32, err error) {
		resp, err = container.PatchItem(ctx, azcosmos.NewPartitionKeyString(key), id, ops, &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
		return resp.RequestCharge, err
	})
	if statusOf(err) == http.StatusBadRequest { // a field is not what can be changed so
		return domain.Errorf(domain.Damaged, "patch document %s of partition %s: %w", id, key, err)
	}
	if err != nil {
		return err
	}
	return c.decode(resp.Value, key, item)
}

// batch carries out all operations that fill adds, or none. If one of them is
// refused, the error is a *failure that names it. bodies asks for the items as
// they are afterwards.
func (c *call) batch(ctx context.Context, container *azcosmos.ContainerClient, key string, bodies bool, fill func(*azcosmos.TransactionalBatch)) ([]azcosmos.TransactionalBatchResult, error) {
	b := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	fill(&b)
	var results []azcosmos.TransactionalBatchResult
	err := c.do(ctx, container, true, func(ctx context.Context) (float32, error) {
		resp, err := container.ExecuteTransactionalBatch(ctx, b, &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: bodies})
		results = resp.OperationResults
		if err == nil && !resp.Success {
			err = batchFailure(results)
		}
		return resp.RequestCharge, err
	})
	return results, err
}

// batchFailure finds the operation that made a batch fail: the others only
// failed because of it.
func batchFailure(results []azcosmos.TransactionalBatchResult) error {
	for i, result := range results {
		if status := int(result.StatusCode); status >= 400 && status != http.StatusFailedDependency {
			return &failure{
				status: status, operation: i,
				err: fmt.Errorf("operation %d of a batch of %d: %d %s", i, len(results), status, http.StatusText(status)),
			}
		}
	}
	return &failure{status: http.StatusInternalServerError, err: errors.New("a batch was rolled back without a reason")}
}

// A query reads the items of one partition, a result page at a time.
type query struct {
	call       *call
	container  *azcosmos.ContainerClient
	key        string
	everywhere bool // the items of all partitions, whatever the key
	text       string
	params     []azcosmos.QueryParameter

	continuation *string
	done         bool
}

func (c *call) query(container *azcosmos.ContainerClient, key, text string, params ...azcosmos.QueryParameter) *query {
	return &query{call: c, container: container, key: key, text: text, params: params}
}

// next returns the next result page, of at most size items; an empty one does
// not mean that it was the last.
func (q *query) next(ctx context.Context, size int) ([][]byte, error) {
	key := azcosmos.NewPartitionKey()
	if !q.everywhere {
		key = azcosmos.NewPartitionKeyString(q.key)
	}
	var items [][]byte
	err := q.call.do(ctx, q.container, false, func(ctx context.Context) (float32, error) {
		// A fresh pager each time: one that has failed cannot be asked again.
		pager := q.container.NewQueryItemsPager(q.text, key, &azcosmos.QueryOptions{
			PageSizeHint:      int32(min(size, 1000)), //nolint:gosec // at most 1000
			ContinuationToken: q.continuation,
			QueryParameters:   q.params,
		})
		resp, err := pager.NextPage(ctx)
		if err == nil {
			items = resp.Items
			q.continuation, q.done = resp.ContinuationToken, resp.ContinuationToken == nil
		}
		return resp.RequestCharge, err
	})
	return items, err
}

// skipDamage reports whether err is a damaged document. If so, the query resumes after
// it.
func (q *query) skipDamage(err error) bool {
	f, ok := errors.AsType[*failure](err)
	if !ok || !f.damage || f.resume == "" {
		return false
	}
	q.continuation = &f.resume
	return true
}

// all returns every item of the query, decoded.
func all[T any](ctx context.Context, q *query) ([]*T, error) {
	var found []*T
	for !q.done {
		items, err := q.next(ctx, 1000)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			t := new(T)
			if err := q.call.decode(item, q.key, t); err != nil {
				return nil, err
			}
			found = append(found, t)
		}
	}
	return found, nil
}
