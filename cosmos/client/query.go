package client

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A Query reads documents, one result page at a time.
type Query struct {
	call           *Call
	container      *azcosmos.ContainerClient
	key            string
	crossPartition bool // whether the query reads all partitions, and not only the partition with the key
	text           string
	params         []azcosmos.QueryParameter

	continuation *string
	done         bool
}

// Query returns a query of one partition.
func (c *Call) Query(container *azcosmos.ContainerClient, key, text string, params ...azcosmos.QueryParameter) *Query {
	return &Query{call: c, container: container, key: key, text: text, params: params}
}

// QueryAllPartitions returns a query of all partitions of a container. Errors contain label instead of
// the partition key of a document.
func (c *Call) QueryAllPartitions(container *azcosmos.ContainerClient, label, text string, params ...azcosmos.QueryParameter) *Query {
	q := c.Query(container, label, text, params...)
	q.crossPartition = true
	return q
}

// Next returns the next result page, of up to size documents. Pages may follow an empty page; see
// [Query.IsDone].
func (q *Query) Next(ctx context.Context, size int) ([][]byte, error) {
	key := azcosmos.NewPartitionKey()
	if !q.crossPartition {
		key = azcosmos.NewPartitionKeyString(q.key)
	}
	var items [][]byte
	err := q.call.sendRequest(ctx, q.container, false, func(ctx context.Context) (float32, error) {
		// Each attempt needs a new pager: a pager that has failed cannot be used again.
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

// IsDone reports whether the last result page has been returned.
func (q *Query) IsDone() bool { return q.done }

// Decode reads a document that Next returned; see [Call.Decode].
func (q *Query) Decode(doc []byte, into any) error { return q.call.Decode(doc, q.key, into) }

// NextPage returns the position of the next result page, for [Query.ResumeAt]. It is empty
// before the first page and after the last.
func (q *Query) NextPage() string {
	if q.continuation == nil {
		return ""
	}
	return *q.continuation
}

// ResumeAt makes the query continue at a position that [Query.NextPage] of the same query has returned.
func (q *Query) ResumeAt(position string) { q.continuation = &position }

// UseCall makes the requests for the following result pages use the budget of c.
func (q *Query) UseCall(c *Call) { q.call = c }

// SkipDamage reports whether err is about a damaged document that the query can skip. If so, the query
// continues after the damaged document.
func (q *Query) SkipDamage(err error) bool {
	if err == nil {
		return false
	}
	f := FailureOf(err)
	if !f.damage || f.resume == "" {
		return false
	}
	q.continuation = &f.resume
	return true
}

// All returns all remaining documents of the query, decoded.
func All[T any](ctx context.Context, q *Query) ([]*T, error) {
	found, unreadable, err := AllReadable[T](ctx, q)
	if err == nil && len(unreadable) > 0 {
		err = unreadable[0].Err
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// An Unreadable is a document that this version cannot read.
type Unreadable struct {
	ID       string
	Modified int64 // time of the last write, in Unix seconds
	Err      error // error of kind Damaged or NewerFormat
}

// AllReadable returns all remaining documents of the query, decoded, and separately the documents that
// this version cannot read. It is for documents that are useful without each other.
func AllReadable[T any](ctx context.Context, q *Query) (found []*T, unreadable []Unreadable, err error) {
	for !q.IsDone() {
		items, err := q.Next(ctx, 1000)
		if err != nil {
			return nil, nil, err
		}
		for _, item := range items {
			t := new(T)
			if err := q.Decode(item, t); err != nil {
				unreadable = append(unreadable, Unreadable{idOf(item), modifiedOf(item), err})
				continue
			}
			found = append(found, t)
		}
	}
	return found, unreadable, nil
}
