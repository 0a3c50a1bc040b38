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

// A Query asks one partition for items.
type Query struct {
	Text   string
	Params map[string]any // by name, the @ included
	Page   int32          // most items of a page; 0 for as many as the account gives
}

// AddIn adds a condition: a path has one of some values. It names each of them, as an index
// wants it.
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

// Each yields what a query finds. It asks for a page when the one before has been
// yielded. Breaking off leaves nothing behind.
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

// All returns everything that a query finds.
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

// First returns the first item that a query finds, if there is one.
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
	for _, name := range slices.Sorted(maps.Keys(q.Params)) { // in order, for a continuation goes with one text
		options.QueryParameters = append(options.QueryParameters, azcosmos.QueryParameter{Name: name, Value: q.Params[name]})
	}
	err = c.sendThrottled(ctx, "query", partition, func() error {
		// A pager that has failed cannot be asked again.
		pager := c.client.NewQueryItemsPager(q.Text, azcosmos.NewPartitionKeyString(partition), options)
		page, err = pager.NextPage(ctx)
		return err
	})
	return page, err
}
