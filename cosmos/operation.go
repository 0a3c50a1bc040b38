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

// An operation is one call of a port, or one piece of upkeep. Everything it asks
// of Cosmos goes through it, so that one budget covers all its retries and one
// place meters requests and request units. It is safe for concurrent use.
type operation struct {
	r    *Repository
	name string

	mu      sync.Mutex
	retries int  // left
	doubt   bool // a write may have been carried out although its answer does not say so
}

// The budget of an operation.
const (
	callTimeout = 5 * time.Second // of one request; Cosmos itself gives up after 5 s
	minBackoff  = 4 * time.Millisecond
	maxBackoff  = time.Second
)

// grant adds to the budget of an operation that turns out to be big.
func (o *operation) grant(retries int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.r.opts.Retries > 0 {
		o.retries += retries
	}
}

func (r *Repository) begin(name string) *operation {
	return &operation{r: r, name: name, retries: r.opts.Retries}
}

// pause takes one retry from the budget and waits before it, with full jitter.
// It reports false if the budget or the context has come to its end, or will have
// before after is over: the caller is better told at once.
func (o *operation) pause(ctx context.Context, after time.Duration) bool {
	o.mu.Lock()
	used := max(o.r.opts.Retries-o.retries, 0)
	o.retries--
	left := o.retries
	o.mu.Unlock()
	if end, ok := ctx.Deadline(); left < 0 || ok && time.Until(end) < after {
		return false
	}
	o.r.metrics.retries.WithLabelValues(o.name).Inc()
	backoff := min(minBackoff<<min(used, 10), maxBackoff)
	return sleep(ctx, after+o.r.jitter(backoff))
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

// errMoved reports that what an operation had read is no longer so; it starts
// over from fresh reads.
var errMoved = errors.New("the store moved on")

// errMissing reports that something is not to be seen that a head or a gate says
// is there. At first that is an old read, so it is an errMoved; if it lasts, it is
// damage.
var errMissing = fmt.Errorf("what must be there is missing: %w", errMoved)

// lasting is how often in a row something must be missing to be gone.
const lasting = 8

// inDoubt reports whether a write was made of which nobody knows whether it was
// carried out.
func (o *operation) inDoubt() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubt
}

// outcome is what an operation came to, for its caller. If a write was made of
// which nobody knows whether it was carried out, no error may say that nothing
// happened.
func (o *operation) outcome(what string, err error) error {
	err = classified(what, err)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Unknown, domain.NewerFormat:
		if err != nil && o.doubt {
			return domain.Errorf(domain.Uncertain, "%w", err)
		}
	default:
	}
	return err
}

// startOver runs try until it returns something else than errMoved. If the
// budget ends before that, the caller is told that others were faster.
func (o *operation) startOver(ctx context.Context, try func() error) error {
	missing := 0 // times in a row
	for {
		err := try()
		if !errors.Is(err, errMoved) {
			return err
		}
		missing++
		if !errors.Is(err, errMissing) {
			missing = 0
		}
		if !o.pause(ctx, 0) {
			if ctx.Err() != nil {
				return domain.Errorf(domain.Unavailable, "%s: %w", o.name, ctx.Err())
			}
			if fault := o.r.suspectContainers(ctx); fault != nil {
				return domain.Errorf(domain.Unavailable, "%s: %w", o.name, fault)
			}
			if missing >= lasting {
				return domain.Errorf(domain.Damaged, "%s: %w, in %d attempts in a row", o.name, err, missing)
			}
			return domain.Errorf(domain.Busy, "%s: gave up after %d retries against other writers or stale reads: %w", o.name, o.r.opts.Retries, err)
		}
	}
}

// do makes a call, again and again while that makes sense. write says whether
// the call changes something: then an outcome that is still unknown in the end
// is Uncertain.
func (o *operation) do(ctx context.Context, container *azcosmos.ContainerClient, write bool, call func(context.Context) (float32, error)) error {
	uncertain := false
	for {
		attempt, cancel := context.WithTimeout(ctx, callTimeout)
		began := time.Now()
		charge, err := call(attempt)
		cancel()
		o.r.metrics.called(o.name, container.ID(), err, charge, time.Since(began))
		if err == nil {
			return nil
		}
		f := failureOf(err)
		if write && f.happened() {
			uncertain = true
			o.mu.Lock()
			o.doubt = true
			o.mu.Unlock()
		}
		if f.retriable() && ctx.Err() == nil && o.pause(ctx, f.after) {
			continue
		}
		switch {
		case !f.retriable():
			if f.mayBeContainers() {
				if fault := o.r.suspectContainers(ctx); fault != nil {
					return domain.Errorf(domain.Unavailable, "%s: %w (%v)", o.name, fault, f)
				}
			}
			return err // its status says what it is
		case uncertain:
			return domain.Errorf(domain.Uncertain, "%s: it is not known whether a write to %s was carried out: %w", o.name, container.ID(), f)
		case ctx.Err() != nil:
			return domain.Errorf(domain.Unavailable, "%s: %w", o.name, context.Cause(ctx))
		}
		return domain.Errorf(f.kind(), "%s: gave up on %s: %w", o.name, container.ID(), f)
	}
}

// read fetches an item and returns its etag.
func (o *operation) read(ctx context.Context, c *azcosmos.ContainerClient, key, id string, item any) (azcore.ETag, error) {
	var resp azcosmos.ItemResponse
	err := o.do(ctx, c, false, func(ctx context.Context) (charge float32, err error) {
		resp, err = c.ReadItem(ctx, azcosmos.NewPartitionKeyString(key), id, nil)
		return resp.RequestCharge, err
	})
	if err == nil {
		err = o.decode(resp.Value, key, item)
	}
	return resp.ETag, err
}

// put creates an item, or replaces the one that has etag. It returns the new etag.
func (o *operation) put(ctx context.Context, c *azcosmos.ContainerClient, key, id string, etag azcore.ETag, item any) (azcore.ETag, error) {
	doc, pk := encoded(item), azcosmos.NewPartitionKeyString(key)
	var written azcore.ETag
	err := o.do(ctx, c, true, func(ctx context.Context) (float32, error) {
		var resp azcosmos.ItemResponse
		var err error
		if etag == "" {
			resp, err = c.CreateItem(ctx, pk, doc, nil)
		} else {
			resp, err = c.ReplaceItem(ctx, pk, id, doc, &azcosmos.ItemOptions{IfMatchEtag: &etag})
		}
		written = resp.ETag
		return resp.RequestCharge, err
	})
	return written, err
}

// remove deletes the item that has etag.
func (o *operation) remove(ctx context.Context, c *azcosmos.ContainerClient, key, id string, etag azcore.ETag) error {
	return o.do(ctx, c, true, func(ctx context.Context) (float32, error) {
		resp, err := c.DeleteItem(ctx, azcosmos.NewPartitionKeyString(key), id, &azcosmos.ItemOptions{IfMatchEtag: &etag})
		return resp.RequestCharge, err
	})
}

// patch changes fields of an item and returns what it is afterwards.
func (o *operation) patch(ctx context.Context, c *azcosmos.ContainerClient, key, id string, ops azcosmos.PatchOperations, item any) error {
	var resp azcosmos.ItemResponse
	err := o.do(ctx, c, true, func(ctx context.Context) (charge float32, err error) {
		resp, err = c.PatchItem(ctx, azcosmos.NewPartitionKeyString(key), id, ops, &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
		return resp.RequestCharge, err
	})
	if statusOf(err) == http.StatusBadRequest { // a field is not what can be changed so
		return domain.Errorf(domain.Damaged, "patch document %s of partition %s: %w", id, key, err)
	}
	if err != nil {
		return err
	}
	return o.decode(resp.Value, key, item)
}

// batch carries out all operations that fill adds, or none. If one of them is
// refused, the error is a *failure that names it. bodies asks for the items as
// they are afterwards.
func (o *operation) batch(ctx context.Context, c *azcosmos.ContainerClient, key string, bodies bool, fill func(*azcosmos.TransactionalBatch)) ([]azcosmos.TransactionalBatchResult, error) {
	b := c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	fill(&b)
	var results []azcosmos.TransactionalBatchResult
	err := o.do(ctx, c, true, func(ctx context.Context) (float32, error) {
		resp, err := c.ExecuteTransactionalBatch(ctx, b, &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: bodies})
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
	o          *operation
	container  *azcosmos.ContainerClient
	key        string
	everywhere bool // the items of all partitions, whatever the key
	text       string
	params     []azcosmos.QueryParameter

	continuation *string
	done         bool
}

func (o *operation) query(c *azcosmos.ContainerClient, key, text string, params ...azcosmos.QueryParameter) *query {
	return &query{o: o, container: c, key: key, text: text, params: params}
}

// next returns the next result page, of at most size items; an empty one does
// not mean that it was the last.
func (q *query) next(ctx context.Context, size int) ([][]byte, error) {
	key := azcosmos.NewPartitionKey()
	if !q.everywhere {
		key = azcosmos.NewPartitionKeyString(q.key)
	}
	var items [][]byte
	err := q.o.do(ctx, q.container, false, func(ctx context.Context) (float32, error) {
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
			if err := q.o.decode(item, q.key, t); err != nil {
				return nil, err
			}
			found = append(found, t)
		}
	}
	return found, nil
}
