package items

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A Query selects items of one partition.
type Query struct {
	Text   string
	Params map[string]any // parameter values by name, including the @
	Page   int32          // maximum number of items in a page; 0 means the default of the account
}

// AddIn adds the condition that the value at path is one of values. The query lists the values, so
// that the index can be used.
func (q *Query) AddIn(path string, values []string) {
	names := make([]string, len(values))
	params := maps.Clone(q.Params)
	if params == nil {
		params = make(map[string]any)
	}
	for i, v := range values {
		names[i] = fmt.Sprintf("@in%d", i)
		params[names[i]] = v
	}
	q.Text += " AND " + path + " IN (" + strings.Join(names, ", ") + ")"
	q.Params = params
}

// Each yields the results of a query. It requests a page after it has yielded the
// previous page. The loop may end early.
func Each[T any](ctx context.Context, c Container, partition string, q Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var continuation *string
		for {
			page, err := c.readPage(ctx, partition, q, continuation)
			if err != nil {
				yield(none, err)
				return
			}
			for _, raw := range page.Items {
				var item T
				if err := decodeItem(raw, &item); err != nil {
					yield(none, err)
					return
				}
				if !yield(item, nil) {
					return
				}
			}
			if continuation = page.ContinuationToken; continuation == nil {
				return
			}
		}
	}
}

// All returns all results of a query.
func All[T any](ctx context.Context, c Container, partition string, q Query) ([]T, error) {
	var all []T
	for item, err := range Each[T](ctx, c, partition, q) {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// First returns the first result of a query, if there is one.
func First[T any](ctx context.Context, c Container, partition string, q Query) (first T, found bool, err error) {
	for item, err := range Each[T](ctx, c, partition, q) {
		return item, err == nil, err
	}
	return first, false, nil
}

func (c Container) readPage(ctx context.Context, partition string, q Query, continuation *string) (page azcosmos.QueryItemsResponse, err error) {
	options := &azcosmos.QueryOptions{PageSizeHint: q.Page, ContinuationToken: continuation}
	if q.Page == 0 {
		options.PageSizeHint = -1
	}
	for _, name := range slices.Sorted(maps.Keys(q.Params)) { // sorted, because a continuation is only valid with the same query text
		options.QueryParameters = append(options.QueryParameters, azcosmos.QueryParameter{Name: name, Value: q.Params[name]})
	}
	err = c.sendThrottled(ctx, "query", partition, func() error {
		// A pager cannot be used after an error.
		pager := c.client.NewQueryItemsPager(q.Text, azcosmos.NewPartitionKeyString(partition), options)
		page, err = pager.NextPage(ctx)
		return err
	})
	return page, err
}
