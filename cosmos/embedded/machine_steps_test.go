package embedded_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func rapidStatus(r *rapid.T, answer *http.Response, err error) int {
	var refused *azcore.ResponseError
	if errors.As(err, &refused) {
		return refused.StatusCode
	}
	require.NoError(r, err)
	return answer.StatusCode
}

var bulkNames = map[stepKind]string{creating: "Create", upserting: "Upsert", replacing: "Replace", patching: "Patch", deleting: "Delete", reading: "Read"}

// runBulk sends a bulk request with independent operations in both partitions.
func (m *machine) runBulk(t *testing.T, r *rapid.T) {
	var ops []modelOperation
	var parts []map[string]any
	for range rapid.IntRange(1, 4).Draw(r, "operations") {
		o := m.randomOperation(r, rapid.SampledFrom([]string{"p", "q"}).Draw(r, "partition"))
		ops = append(ops, o)
		part := map[string]any{"operationType": bulkNames[o.kind], "partitionKey": fmt.Sprintf("[%q]", o.pk)}
		if o.kind != creating && o.kind != upserting {
			part["id"] = o.item.ID
		}
		if o.ifMatch != "" {
			part["ifMatch"] = o.ifMatch
		}
		switch o.kind {
		case creating, upserting, replacing:
			part["resourceBody"] = o.item
		case patching:
			p := o.patchOperations()
			part["resourceBody"] = &p
		case deleting, reading, kinds:
		}
		parts = append(parts, part)
	}
	body, err := json.Marshal(parts)
	require.NoError(r, err)
	// A bulk request is sent only before the split, while one range contains all partitions.
	ranges := m.rangeIDs(t, r)
	if len(ranges) > 1 {
		r.Skip("its partitions may lie apart")
	}
	answer, err := m.engine.Transport().Do(signedRequest(t, m.engine, http.MethodPost, docsPath, "docs", containerLink, string(body),
		"x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "False", "x-ms-documentdb-partitionkeyrangeid", ranges[0]))
	require.NoError(r, err)
	var results []struct {
		StatusCode int         `json:"statusCode"`
		ETag       azcore.ETag `json:"eTag"`
	}
	text, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	require.NoError(r, json.Unmarshal(text, &results), "%s", text)
	for i, o := range ops {
		require.Equal(r, m.applyOperation(o), results[i].StatusCode, "operation %d, %+v: %s", i, o, text)
		if results[i].StatusCode < 300 {
			m.recordWrite(r, o, results[i].ETag)
		}
	}
}

// rangeIDs returns the ids of the physical partitions.
func (m *machine) rangeIDs(t *testing.T, r *rapid.T) (ids []string) {
	answer, err := m.engine.Transport().Do(signedRequest(t, m.engine, http.MethodGet, "/dbs/db/colls/c/pkranges", "pkranges", containerLink, ""))
	require.NoError(r, err)
	var list struct {
		PartitionKeyRanges []struct{ ID string }
	}
	require.NoError(r, json.NewDecoder(answer.Body).Decode(&list))
	for _, one := range list.PartitionKeyRanges {
		ids = append(ids, one.ID)
	}
	return ids
}

func (m *machine) queryBoth(r *rapid.T) {
	pk := rapid.SampledFrom([]string{"p", "q", ""}).Draw(r, "partition")
	page := rapid.SampledFrom([]int32{-1, 1, 2, 100}).Draw(r, "page")
	least := rapid.IntRange(0, 9).Draw(r, "least")
	found := slices.DeleteFunc(m.visibleItems(pk), func(s storedItem) bool { return s.N < least })
	text := fmt.Sprintf("SELECT VALUE c.n FROM c WHERE c.n >= %d", least)
	if pk != "" && rapid.Bool().Draw(r, "sorted") {
		text += " ORDER BY c.n"
		slices.SortStableFunc(found, func(a, b storedItem) int { return cmp.Compare(a.N, b.N) })
	}
	want := []string{}
	for _, s := range found {
		want = append(want, fmt.Sprint(s.N))
	}
	require.Equal(r, want, m.findTexts(r, pk, text, page), text)
	if pk != "" {
		count := fmt.Sprintf("SELECT VALUE COUNT(1) FROM c WHERE c.n >= %d", least)
		require.Equal(r, []string{fmt.Sprint(len(want))}, m.findTexts(r, pk, count, page), count)
		id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(r, "id")
		byID := fmt.Sprintf("SELECT c.id, c.pk, c.n, c.mail, c.ttl, c.data FROM c WHERE c.id = %q AND c.n >= %d", id, least)
		named := slices.DeleteFunc(found, func(s storedItem) bool { return s.ID != id })
		require.Equal(r, encodeItems(named), m.findTexts(r, pk, byID, page), byID)
	}
}

// queryWhileChanging reads the pages of an ordered query while documents change. Each unchanged document must be
// returned once, and all results must be in order.
func (m *machine) queryWhileChanging(r *rapid.T) {
	before := m.visibleItems("p")
	pager := m.c.NewQueryItemsPager("SELECT c.id, c.n FROM c ORDER BY c.n", azcosmos.NewPartitionKeyString("p"), &azcosmos.QueryOptions{PageSizeHint: 1})
	var found []modelItem
	for pager.More() {
		page, err := pager.NextPage(context.Background())
		require.NoError(r, err)
		for _, one := range page.Items {
			var i modelItem
			require.NoError(r, json.Unmarshal(one, &i))
			found = append(found, i)
		}
		if len(found) < 4 { // few documents grow, because a document that grows is returned a second time
			m.runSingle(r)
		}
	}
	require.True(r, slices.IsSortedFunc(found, func(a, b modelItem) int { return cmp.Compare(a.N, b.N) }), "%+v", found)
	for _, s := range before {
		if m.items[itemKey{"p", s.ID}].changed == s.changed {
			require.Len(r, slices.DeleteFunc(slices.Clone(found), func(i modelItem) bool { return i.ID != s.ID }), 1, "%s in %+v", s.ID, found)
		}
	}
}

func (m *machine) readMany(r *rapid.T) {
	var asked []azcosmos.ItemIdentity
	want := []string{}
	for _, pk := range []string{"p", "q"} {
		for _, id := range []string{"a", "b", "c", "d"} {
			if rapid.Bool().Draw(r, pk+id) {
				asked = append(asked, azcosmos.ItemIdentity{ID: id, PartitionKey: azcosmos.NewPartitionKeyString(pk)})
				if s, ok := m.items[itemKey{pk, id}]; ok && !s.hasExpired(m.now) {
					want = append(want, fmt.Sprint(pk, id, s.N))
				}
			}
		}
	}
	answer, err := m.c.ReadManyItems(context.Background(), asked, nil)
	require.NoError(r, err)
	got := []string{}
	for _, one := range answer.Items {
		var i modelItem
		require.NoError(r, json.Unmarshal(one, &i))
		got = append(got, fmt.Sprint(i.PK, i.ID, i.N))
	}
	require.ElementsMatch(r, want, got)
}

// readChanges reads either the changes since the last call or all changes.
func (m *machine) readChanges(r *rapid.T) {
	o := azcosmos.ChangeFeedOptions{FeedRange: whole, MaxItemCount: rapid.SampledFrom([]int32{1, 2, 100}).Draw(r, "page")}
	after := 0
	if m.token != nil && rapid.Bool().Draw(r, "go on") {
		o.FeedRange, o.Continuation, after = nil, m.token, m.fed
	}
	want := m.changesAfter(after)
	var got []string
	for {
		page, err := m.c.ReadChangeFeed(context.Background(), &o)
		require.NoError(r, err)
		m.token = &page.ContinuationToken
		if page.Count == 0 {
			break
		}
		for _, one := range page.Items {
			var i modelItem
			require.NoError(r, json.Unmarshal(one, &i))
			got = append(got, fmt.Sprintf("%s/%s/%d", i.PK, i.ID, i.N))
		}
		o.FeedRange, o.Continuation = nil, m.token
	}
	m.fed = m.count
	if m.offered <= 10_000 {
		require.Equal(r, want, got)
	} else { // each range orders its own changes
		require.ElementsMatch(r, want, got)
	}
}

func (m *machine) sweepBoth(r *rapid.T) {
	removed, err := m.engine.Sweep(context.Background())
	require.NoError(r, err)
	require.Equal(r, m.sweepExpired(), removed)
}

// splitOnce splits the container at most once. It does so in few runs, because ranges never merge.
func (m *machine) splitOnce(r *rapid.T) {
	if m.offered > 400 || rapid.IntRange(0, 3).Draw(r, "rarely") > 0 {
		return
	}
	m.offered = 20_000
	_, err := m.c.ReplaceThroughput(context.Background(), azcosmos.NewManualThroughputProperties(m.offered), nil)
	require.NoError(r, err)
}
