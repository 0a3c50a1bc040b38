package content

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// parseBlobURI either refuses a URI, or returns the name of a blob in one of the locations.
func FuzzContentURIs(f *testing.F) {
	locations := []blobLocation{
		{scheme: "http", host: "127.0.0.1:10000", path: "/devstoreaccount1", container: "exchange"},
		{scheme: "https", host: "hub.blob.core.windows.net", container: "exchange"},
	}
	for _, p := range locations {
		for _, rest := range []string{"/a/b", "/a%2Fb", "//a", "/../a", "/%2e%2e/a", "/a?sig=SECRET", "/a#b", "/%", "", "/", "s/a", `/a\b`} {
			f.Add(p.containerURL() + rest)
		}
	}
	f.Add("https://hub.blob.core.windows.net@example.org/exchange/a")
	f.Add("//hub.blob.core.windows.net/exchange/a")
	f.Fuzz(func(t *testing.T, uri string) {
		name, err := parseBlobURI(locations, false, uri)
		if err != nil {
			require.Equal(t, domain.Invalid, domain.KindOf(err))
			require.Empty(t, name)
			return
		}
		require.NoError(t, checkForeignName(name))
		stated, err := url.Parse(uri)
		require.NoError(t, err)
		require.Nil(t, stated.User)
		is := false
		for _, p := range locations {
			here, err := url.Parse(p.containerURL())
			require.NoError(t, err)
			is = is || strings.EqualFold(here.Hostname(), stated.Hostname()) && stated.Path == here.Path+"/"+name
		}
		require.True(t, is, "%q in %q", name, uri)
	})
}
