package ledger_test

import (
	"context"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A fixture is a Service on an in-memory store that counts the calls to it.
type fixture struct {
	*testing.T
	*ledger.Service
	store *countedObjects
}

type countedObjects struct {
	*memory.Objects
	lists, reads, counts int
	listed               int // objects
}

func (c *countedObjects) List(ctx context.Context, r repository.ObjectRange, limit int) (repository.ObjectPage, error) {
	page, err := c.Objects.List(ctx, r, limit)
	c.lists++
	c.listed += len(page.Objects)
	return page, err
}

func (c *countedObjects) Object(ctx context.Context, name domain.ObjectName) (domain.Object, error) {
	c.reads++
	return c.Objects.Object(ctx, name)
}

func (c *countedObjects) Count(ctx context.Context, r repository.ObjectRange) (int64, error) {
	c.counts++
	return c.Objects.Count(ctx, r)
}

func newFixture(t *testing.T) *fixture {
	store := &countedObjects{Objects: memory.NewObjects()}
	return &fixture{t, ledger.New(ledger.Ports{Objects: store}, ledger.Options{JSONPatch: applyPatch}), store}
}

func applyPatch(document, operations []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	return patch.Apply(document)
}

func (f *fixture) name(bucket, key string) domain.ObjectName {
	f.Helper()
	name, err := domain.ParseObjectName(bucket, key)
	require.NoError(f, err)
	return name
}

// ingest applies change to each event in a script, and then ingests the events one by one.
func (f *fixture) ingest(bucket, key, script string, change ...func(e *domain.ObjectEvent)) {
	f.Helper()
	for _, call := range objecttest.Calls(script) {
		for _, e := range call {
			for _, c := range change {
				c(&e)
			}
			results, err := f.store.Ingest(f.Context(), []repository.ObjectReport{{Name: f.name(bucket, key), ObjectEvent: e}})
			require.NoError(f, err)
			require.NoError(f, results[0].Err)
		}
	}
}

// parseFilter returns the filter that the parameters define.
func (f *fixture) parseFilter(params map[string][]string) ledger.Filter {
	f.Helper()
	filter, err := ledger.ParseFilter(params)
	require.NoError(f, err)
	return filter
}

// listAll returns the rows of all pages, each as bucket/key@sequencer.
func (f *fixture) listAll(q ledger.Query) (all []string) {
	f.Helper()
	for {
		page, err := f.List(f.Context(), q)
		require.NoError(f, err)
		for i := range page.Rows {
			all = append(all, describe(&page.Rows[i]))
		}
		if page.Next == "" {
			return all
		}
		require.NotEqual(f, q.Token, page.Next)
		q.Token = page.Next
	}
}

func describe(r *ledger.Row) string {
	return r.Name.Bucket() + "/" + r.Name.Key() + "@" + r.SequencerText()
}
