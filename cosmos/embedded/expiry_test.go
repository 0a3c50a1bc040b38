package embedded_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func withTTL(seconds int32) func(*azcosmos.ContainerProperties) {
	return func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = &seconds }
}

func TestExpiredDocument_IsInvisibleToAllRequests(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	_, c := openEngine(t, embedded.Options{Clock: func() time.Time { return now }}, withTTL(10))
	createDocs(t, c, newDoc("default", 1), []byte(`{"id":"short","pk":"p","ttl":3}`), []byte(`{"id":"ever","pk":"p","ttl":-1}`), []byte(`{"id":"null","pk":"p","ttl":null}`))
	for _, tc := range []struct {
		after int
		want  []string
	}{
		{0, []string{"default", "short", "ever", "null"}},
		{2, []string{"default", "short", "ever", "null"}},
		{3, []string{"default", "ever", "null"}},
		{9, []string{"default", "ever", "null"}},
		{10, []string{"ever"}},
		{1e6, []string{"ever"}},
	} {
		now = time.Unix(1_700_000_000+int64(tc.after), 0)
		var found []string
		for _, item := range queryAll(t, c, pk, "SELECT * FROM c", nil)[0] {
			found = append(found, idOf(t, []byte(item)))
		}
		require.Equal(t, tc.want, found, "after %d s", tc.after)
		fed, _ := readFeed(t, c, azcosmos.ChangeFeedOptions{})
		require.Equal(t, tc.want, fed)
		require.Equal(t, [][]string{{fmt.Sprint(len(tc.want))}}, queryAll(t, c, pk, "SELECT VALUE COUNT(1) FROM c", nil))
		_, err := c.ReadItem(t.Context(), pk, "short", nil)
		require.Equal(t, tc.after >= 3, err != nil, "after %d s", tc.after)
	}
	_, err := c.ReplaceItem(t.Context(), pk, "default", newDoc("default", 2), nil)
	require.Equal(t, 404, clientStatus(t, nil, err))
	createDocs(t, c, newDoc("default", 3))
	_, err = c.DeleteItem(t.Context(), pk, "short", nil)
	require.Equal(t, 404, clientStatus(t, nil, err))
}

func TestExpiry_RestartsWithAWriteAndNeedsADefault(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	engine, c := openEngine(t, embedded.Options{Clock: func() time.Time { return now }}, withTTL(10))
	createDocs(t, c, newDoc("a", 1))
	now = now.Add(9 * time.Second)
	_, err := c.PatchItem(t.Context(), pk, "a", patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/ttl", 20) }), nil)
	require.NoError(t, err)
	now = now.Add(19 * time.Second)
	_, err = c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	_, err = c.PatchItem(t.Context(), pk, "a", patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/ttl", 0) }), nil)
	require.Equal(t, 400, clientStatus(t, nil, err))
	_, err = c.UpsertItem(t.Context(), pk, []byte(`{"id":"b","pk":"p","ttl":"soon"}`), nil)
	require.Equal(t, 400, clientStatus(t, nil, err))

	read, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	read.ContainerProperties.DefaultTimeToLive = nil
	_, err = c.Replace(t.Context(), *read.ContainerProperties, nil)
	require.NoError(t, err)
	now = now.Add(time.Hour)
	_, err = c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err, "the ttl of a document counts only where the container has one")
	removed, err := engine.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, removed)
}

func TestSweep_RemovesOnlyExpiredDocuments(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	engine, c := openEngine(t, embedded.Options{Dir: t.TempDir(), Clock: func() time.Time { return now }}, withTTL(10))
	for i := range 250 {
		createDocs(t, c, newDoc(fmt.Sprint(i), i))
		if i == 229 {
			now = now.Add(5 * time.Second)
		}
	}
	now = now.Add(5 * time.Second)
	removed, err := engine.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 230, removed)
	removed, err = engine.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, removed)
	require.Equal(t, [][]string{{"20"}}, queryAll(t, c, pk, "SELECT VALUE COUNT(1) FROM c", nil))
}

func TestSweep_UsesOnlySpareThroughput(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	engine, c := openEngine(t, embedded.Options{Throttle: true, Clock: func() time.Time { return now }}, withTTL(1000))
	for i := range 100 {
		createDocs(t, c, newDoc(fmt.Sprint(i), i))
		now = now.Add(100 * time.Millisecond)
	}
	now = now.Add(time.Hour)
	total, sweeps := 0, 0
	for total < 100 {
		removed, err := engine.Sweep(t.Context())
		require.NoError(t, err)
		require.Positive(t, removed)
		require.Less(t, removed, 60, "half of the 400 RU of a second, at 5 to 7 a deletion")
		answer, err := c.UpsertItem(t.Context(), pk, newDoc("new", 1), nil)
		require.Less(t, clientStatus(t, answer.RawResponse, err), 300, "there is budget left for others")
		total += removed
		sweeps++
		now = now.Add(time.Second)
	}
	require.Greater(t, sweeps, 1)
	require.Equal(t, 100, total)
}
