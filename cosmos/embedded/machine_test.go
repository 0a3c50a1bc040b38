package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// TestMachine_AnswersLikeTheModel executes random operations, advances the time, and reopens the engine. It compares
// every response with a model that has no indexes and no files.
func TestMachine_AnswersLikeTheModel(t *testing.T) {
	folders, n := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		m := &machine{containerModel: &containerModel{items: map[itemKey]storedItem{}, now: time.Unix(1_700_000_000, 0)}, etags: map[azcore.ETag]bool{}}
		onDisk := rapid.Bool().Draw(r, "on disk")
		if onDisk {
			n++
			m.dir = filepath.Join(folders, fmt.Sprint(n))
		}
		m.openBoth(t, r)
		defer func() {
			m.closeEngine(r)
			require.NoError(r, os.RemoveAll(m.dir))
		}()
		actions := map[string]func(*rapid.T){
			"":          m.compareAll,
			"single":    m.runSingle,
			"other":     m.runSingle, // a second entry, so that runSingle runs more often
			"batch":     m.runBatch,
			"bulk":      func(r *rapid.T) { m.runBulk(t, r) },
			"query":     m.queryBoth,
			"disturbed": m.queryWhileChanging,
			"read many": m.readMany,
			"feed":      m.readChanges,
			"time": func(r *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(r, "seconds")) * time.Second)
			},
			"sweep":      m.sweepBoth,
			"throughput": m.splitOnce,
		}
		if onDisk {
			actions["restart"] = func(r *rapid.T) { m.closeEngine(r); m.openBoth(t, r) }
		}
		r.Repeat(actions)
	})
}

// A machine is an engine and the model with which it is compared.
type machine struct {
	*containerModel
	dir     string
	engine  *embedded.Engine
	account *azcosmos.Client
	c       *azcosmos.ContainerClient
	etags   map[azcore.ETag]bool // all etags that writes have returned

	token   *string // continuation token of the change feed
	fed     int     // write of the model at which token continues the feed
	offered int32   // current throughput
}

func (m *machine) openBoth(t *testing.T, r *rapid.T) {
	engine, err := embedded.Open(embedded.Options{Dir: m.dir, Clock: func() time.Time { return m.now }})
	require.NoError(r, err)
	m.engine = engine
	cred, err := azcosmos.NewKeyCredential(engine.Key())
	require.NoError(r, err)
	m.account, err = azcosmos.NewClientWithKey(engine.Endpoint(), cred, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: engine.Transport(), Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(r, err)
	if m.offered == 0 {
		m.offered = 400
		newContainer(t, engine, withTTL(machineTTL), func(p *azcosmos.ContainerProperties) {
			p.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/mail"}}}}
		})
	}
	m.c, err = m.account.NewContainer("db", "c")
	require.NoError(r, err)
}

func (m *machine) closeEngine(r *rapid.T) {
	_, err := m.engine.Check(func(problem string) { r.Errorf("%s", problem) })
	require.NoError(r, err)
	m.account.Close()
	require.NoError(r, m.engine.Close())
}

// compareAll compares all documents of the engine with the model.
func (m *machine) compareAll(r *rapid.T) {
	require.Equal(r, encodeItems(m.visibleItems("")), m.findTexts(r, "", "SELECT c.id, c.pk, c.n, c.mail, c.ttl, c.data FROM c", -1))
}

func encodeItems(items []storedItem) []string {
	texts := []string{}
	for _, s := range items {
		b, err := json.Marshal(s.modelItem)
		if err != nil {
			panic(err) // cannot fail for text and numbers
		}
		texts = append(texts, string(b))
	}
	return texts
}

// findTexts returns the results from all pages of a query.
func (m *machine) findTexts(r *rapid.T, pk, text string, page int32) []string {
	key := azcosmos.NewPartitionKey()
	if pk != "" {
		key = azcosmos.NewPartitionKeyString(pk)
	}
	found := []string{}
	for pager := m.c.NewQueryItemsPager(text, key, &azcosmos.QueryOptions{PageSizeHint: page}); pager.More(); {
		page, err := pager.NextPage(context.Background())
		require.NoError(r, err, text)
		for _, one := range page.Items {
			found = append(found, string(one))
		}
	}
	return found
}

func (m *machine) randomOperation(r *rapid.T, pk string) modelOperation {
	o := modelOperation{kind: rapid.SampledFrom([]stepKind{creating, upserting, replacing, patching, deleting, reading}).Draw(r, "operation"), pk: pk}
	o.item = modelItem{ID: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "id"), PK: pk}
	if o.kind == deleting || o.kind == reading {
		o.item = modelItem{ID: o.item.ID}
	} else {
		o.item.N = rapid.IntRange(0, 9).Draw(r, "n")
		o.item.Mail = rapid.SampledFrom([]string{"", "u", "v", "w", "x", "y"}).Draw(r, "mail")
	}
	if o.kind == patching {
		o.least = rapid.SampledFrom([]int{0, 0, 5}).Draw(r, "least")
	} else if o.item.PK != "" {
		o.item.TTL = rapid.SampledFrom([]int{0, 0, -1, 5}).Draw(r, "ttl")
		o.item.Data = strings.Repeat("x", rapid.SampledFrom([]int{0, 100, 5000}).Draw(r, "size"))
	}
	switch have := m.items[itemKey{pk, o.item.ID}]; rapid.IntRange(0, 3).Draw(r, "if match") {
	case 0:
		o.ifMatch = have.etag
	case 1:
		o.ifMatch = `"stale"`
	}
	return o
}

func (o modelOperation) bodyText() []byte {
	b, err := json.Marshal(o.item)
	if err != nil {
		panic(err) // cannot fail for text and numbers
	}
	return b
}

func (o modelOperation) patchOperations() (p azcosmos.PatchOperations) {
	p.AppendIncrement("/n", int64(o.item.N))
	if o.item.Mail != "" {
		p.AppendSet("/mail", o.item.Mail)
	}
	if o.least > 0 {
		p.SetCondition(fmt.Sprintf("from c where c.n >= %d", o.least))
	}
	return p
}

func etagOf(o modelOperation) *azcore.ETag {
	if o.ifMatch == "" {
		return nil
	}
	return &o.ifMatch
}

// recordWrite stores the etag of a successful write. The etag must be new, and a read must return it.
func (m *machine) recordWrite(r *rapid.T, o modelOperation, etag azcore.ETag) {
	switch o.kind {
	case deleting:
		require.Empty(r, etag)
	case reading:
		if have := m.items[itemKey{o.pk, o.item.ID}].etag; have != "" {
			require.Equal(r, have, etag)
		}
	default:
		require.False(r, m.etags[etag], "etag %s was used before", etag)
		m.etags[etag] = true
		m.recordEtag(o, etag)
	}
}

func (m *machine) runSingle(r *rapid.T) {
	o := m.randomOperation(r, rapid.SampledFrom([]string{"p", "q"}).Draw(r, "partition"))
	key, options := azcosmos.NewPartitionKeyString(o.pk), &azcosmos.ItemOptions{IfMatchEtag: etagOf(o)}
	var answer azcosmos.ItemResponse
	var err error
	switch o.kind {
	case creating:
		answer, err = m.c.CreateItem(context.Background(), key, o.bodyText(), options)
	case upserting:
		answer, err = m.c.UpsertItem(context.Background(), key, o.bodyText(), options)
	case replacing:
		answer, err = m.c.ReplaceItem(context.Background(), key, o.item.ID, o.bodyText(), options)
	case patching:
		answer, err = m.c.PatchItem(context.Background(), key, o.item.ID, o.patchOperations(), options)
	case deleting:
		answer, err = m.c.DeleteItem(context.Background(), key, o.item.ID, options)
	default:
		answer, err = m.c.ReadItem(context.Background(), key, o.item.ID, options)
	}
	after, want := m.applyBatch([]modelOperation{o})
	require.Equal(r, want[0], rapidStatus(r, answer.RawResponse, err))
	m.containerModel = after
	if err == nil {
		m.recordWrite(r, o, answer.ETag)
	}
}

func (m *machine) runBatch(r *rapid.T) {
	pk := rapid.SampledFrom([]string{"p", "q"}).Draw(r, "partition")
	var ops []modelOperation
	batch := m.c.NewTransactionalBatch(azcosmos.NewPartitionKeyString(pk))
	for range rapid.IntRange(1, 4).Draw(r, "operations") {
		o := m.randomOperation(r, pk)
		ops = append(ops, o)
		options := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: etagOf(o)}
		switch o.kind {
		case creating:
			batch.CreateItem(o.bodyText(), options)
		case upserting:
			batch.UpsertItem(o.bodyText(), options)
		case replacing:
			batch.ReplaceItem(o.item.ID, o.bodyText(), options)
		case patching:
			batch.PatchItem(o.item.ID, o.patchOperations(), options)
		case deleting:
			batch.DeleteItem(o.item.ID, options)
		default:
			batch.ReadItem(o.item.ID, options)
		}
	}
	answer, err := m.c.ExecuteTransactionalBatch(context.Background(), batch, nil)
	require.NoError(r, err)
	after, want := m.applyBatch(ops)
	got := make([]int, len(ops))
	for i, result := range answer.OperationResults {
		got[i] = int(result.StatusCode)
	}
	require.Equal(r, want, got)
	require.Equal(r, !slices.Contains(want, 424) && want[0] < 300, answer.Success)
	m.containerModel = after
	if answer.Success {
		m.recordEtags(r, ops, func(i int) azcore.ETag { return answer.OperationResults[i].ETag })
	}
}

// recordEtags stores the etags of consecutive operations, several of which may have written the same document.
func (m *machine) recordEtags(r *rapid.T, ops []modelOperation, etag func(i int) azcore.ETag) {
	for i, o := range ops {
		if o.kind != reading {
			m.recordWrite(r, o, etag(i))
		}
	}
}
