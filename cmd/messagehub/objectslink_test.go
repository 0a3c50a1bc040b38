package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A linkingStore is a fake object store that returns a link for every object.
type linkingStore struct{ repository.Source }

func (linkingStore) Stat(_ context.Context, name domain.ObjectName, _ *domain.VersionID) (repository.SourceObject, error) {
	return repository.SourceObject{Key: name.Key()}, nil
}

func (linkingStore) Link(_ context.Context, name domain.ObjectName, _ domain.VersionID, o repository.LinkOptions) (string, error) {
	kind, _, _ := strings.Cut(o.Disposition, ";")
	return "https://store.test/" + name.Key() + "?expires=" + o.Expires.String() + "&as=" + kind, nil
}

func TestObjectsLink_PrintsTheURLOrTheReason(t *testing.T) {
	store, found := memory.New(memory.Options{}), memory.NewObjects()
	name, err := domain.ParseObjectName("bucket", "key")
	require.NoError(t, err)
	var ids []string
	for _, call := range objecttest.Calls("[C@01] [C@02]") {
		_, err := found.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: call[0]}})
		require.NoError(t, err)
		ids = append(ids, ledger.RowID{Name: name, Row: call[0].ID()}.String())
	}
	server := httptest.NewServer(api.New(api.Options{
		Hub: hub.New(store, store, store, hub.Options{}), Objects: ledger.New(ledger.Ports{Objects: found, Source: linkingStore{}}, ledger.Options{}),
		IsOwnHost: loopback.IsHost, NoProxies: true, AdminToken: operatorToken,
	}).Handler())
	t.Cleanup(server.Close)
	require.Equal(t, result{0, "https://store.test/key?expires=168h0m0s&as=inline\n", ""}, objects(t, server.URL, "link", ids[1]))
	require.Equal(t, result{0, "https://store.test/key?expires=5m0s&as=attachment\n", ""}, objects(t, server.URL, "link", ids[1], "--expires", "5m", "--attachment"))
	require.Regexp(t, `^{"link":"https://store.test/key\?[^"]*","expires":"[0-9TZ:-]*"}\n$`, objects(t, server.URL, "link", ids[1], "--json").out)
	got := objects(t, server.URL, "link", ids[0])
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "there is no link: the row is not the current one of its object")
	require.Equal(t, result{0, `{"link":null,"reason":"not-current"}` + "\n", ""}, objects(t, server.URL, "link", ids[0], "--json"))
	for _, expires := range []string{"0.5s", "90m1.5s", "-1s"} {
		require.Equal(t, 2, objects(t, server.URL, "link", ids[1], "--expires", expires).status)
	}
	require.Contains(t, objects(t, server.URL, "link", ids[1], "--expires", "200h").err, "want a whole number of 1 to 604800")
}
