package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A historyClient stores, for each document, the last version that it has read or written.
type historyClient struct {
	*callHistory
	random *rand.Rand
	seen   historyState
}

// nextCall chooses the next call: a query, a batch or a single operation.
func (c *historyClient) nextCall() historyCall {
	switch c.random.IntN(8) {
	case 0:
		return historyCall{query: true}
	case 1, 2:
		batch := historyCall{}
		for range 2 + c.random.IntN(3) {
			batch.steps = append(batch.steps, c.randomStep())
		}
		return batch
	}
	return historyCall{steps: []historyStep{c.randomStep()}}
}

func (c *historyClient) randomStep() historyStep {
	s := historyStep{kind: stepKind(c.random.IntN(int(kinds))), key: c.random.IntN(keys)}
	if s.kind != reading && s.kind != deleting {
		s.value = int(c.value.Add(1))
	}
	if s.kind != reading && s.kind != creating && c.random.IntN(3) > 0 {
		s.match = c.seen[s.key]
	}
	if s.kind == patching && c.random.IntN(2) == 0 {
		s.when = c.seen[s.key]
	}
	return s
}

func (c *historyClient) runCall(ctx context.Context, in historyCall) (out callResult, err error) {
	switch {
	case in.query:
		out.all, err = c.queryState(ctx)
		c.seen = out.all
	case len(in.steps) == 1:
		var one stepResult
		one, err = c.runStep(ctx, in.steps[0])
		out.steps = []stepResult{one}
	default:
		out.steps, err = c.runBatch(ctx, in.steps)
	}
	for i, got := range out.steps {
		if got.value != 0 {
			c.seen[in.steps[i].key] = got.value
		}
	}
	return out, err
}

func (c *historyClient) documentOf(s historyStep) []byte {
	return fmt.Appendf(nil, `{"id":"%d","pk":%q,"n":%d}`, s.key, c.pk, s.value)
}

func (s historyStep) patchOperations() (p azcosmos.PatchOperations) {
	p.AppendSet("/n", s.value)
	if s.when != 0 {
		p.SetCondition(fmt.Sprintf("from c where c.n = %d", s.when))
	}
	return p
}

func (c *historyClient) runStep(ctx context.Context, s historyStep) (stepResult, error) {
	pk, id := azcosmos.NewPartitionKeyString(c.pk), fmt.Sprint(s.key)
	o := &azcosmos.ItemOptions{IfMatchEtag: c.etags.etagOf(c.pk, s.match)}
	var got azcosmos.ItemResponse
	var err error
	switch s.kind {
	case creating:
		got, err = c.c.CreateItem(ctx, pk, c.documentOf(s), o)
	case upserting:
		got, err = c.c.UpsertItem(ctx, pk, c.documentOf(s), o)
	case replacing:
		got, err = c.c.ReplaceItem(ctx, pk, id, c.documentOf(s), o)
	case patching:
		got, err = c.c.PatchItem(ctx, pk, id, s.patchOperations(), o)
	case deleting:
		got, err = c.c.DeleteItem(ctx, pk, id, o)
	default:
		got, err = c.c.ReadItem(ctx, pk, id, o)
	}
	var refused *azcore.ResponseError
	if errors.As(err, &refused) && (refused.StatusCode == 404 || refused.StatusCode == 409 || refused.StatusCode == 412) {
		return stepResult{status: refused.StatusCode}, nil
	}
	if err != nil {
		return stepResult{}, err
	}
	return c.recordResponse(s, got.RawResponse.StatusCode, got.Value, got.ETag)
}

// recordResponse returns the result of an executed step.
func (c *historyClient) recordResponse(s historyStep, status int, body []byte, etag azcore.ETag) (stepResult, error) {
	out := stepResult{status: status, value: s.value}
	if s.kind == reading {
		var d struct{ N int }
		if err := json.Unmarshal(body, &d); err != nil {
			return out, err
		}
		out.value = d.N
	}
	if s.kind != deleting {
		c.etags.recordEtag(c.pk, out.value, etag)
	}
	return out, nil
}

func (c *historyClient) runBatch(ctx context.Context, steps []historyStep) ([]stepResult, error) {
	batch := c.c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(c.pk))
	for _, s := range steps {
		id := fmt.Sprint(s.key)
		o := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: c.etags.etagOf(c.pk, s.match)}
		switch s.kind {
		case creating:
			batch.CreateItem(c.documentOf(s), o)
		case upserting:
			batch.UpsertItem(c.documentOf(s), o)
		case replacing:
			batch.ReplaceItem(id, c.documentOf(s), o)
		case patching:
			batch.PatchItem(id, s.patchOperations(), o)
		case deleting:
			batch.DeleteItem(id, o)
		default:
			batch.ReadItem(id, o)
		}
	}
	got, err := c.c.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		return nil, err
	}
	out := make([]stepResult, len(steps))
	for i, r := range got.OperationResults {
		out[i].status = int(r.StatusCode)
		if got.Success {
			if out[i], err = c.recordResponse(steps[i], int(r.StatusCode), r.ResourceBody, r.ETag); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (c *historyClient) queryState(ctx context.Context) (found historyState, err error) {
	pager := c.c.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKeyString(c.pk), nil)
	page, err := pager.NextPage(ctx)
	for _, item := range page.Items {
		var d struct {
			ID   int `json:"id,string"`
			N    int
			ETag azcore.ETag `json:"_etag"`
		}
		if err := json.Unmarshal(item, &d); err != nil {
			return found, err
		}
		found[d.ID] = d.N
		c.etags.recordEtag(c.pk, d.N, d.ETag)
	}
	return found, err
}

// An etagBook maps etags to writes and writes to etags.
type etagBook struct {
	etags, writes sync.Map
	twice         atomic.Bool
}

type writtenValue struct {
	pk    string
	value int
}

func (b *etagBook) recordEtag(pk string, value int, etag azcore.ETag) {
	w := writtenValue{pk, value}
	if was, _ := b.etags.LoadOrStore(w, etag); was != etag {
		b.twice.Store(true)
	}
	if was, _ := b.writes.LoadOrStore(etag, w); was != w {
		b.twice.Store(true)
	}
}

func (b *etagBook) etagOf(pk string, value int) *azcore.ETag {
	if value == 0 {
		return nil
	}
	if etag, ok := b.etags.Load(writtenValue{pk, value}); ok {
		etag := etag.(azcore.ETag)
		return &etag
	}
	return nil
}
