package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/content"
)

// Other machines may reach the hub's own account by a host name that the hub does not know, such as the
// name of a container or a service. With AnyHost, the exchange accepts a URI with this name.
func TestAnAccountWithAnyHost_IsRecognizedByAnyHost(t *testing.T) {
	o := inProcess(openAccount(t, ""))
	o.Container, o.Create, o.AnyHost = "exchange", true, true
	anyHost, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	o.AnyHost = false
	known, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	for uri, want := range map[string]string{
		"http://hub:10000/devstoreaccount1/exchange/a%20b": "a b",
		"https://hub.example/devstoreaccount1/exchange/a":  "a",
		"http://hub:10000/another/exchange/a":              "",
		"http://hub:10000/devstoreaccount1/content/a":      "",
		"ftp://hub/devstoreaccount1/exchange/a":            "",
		"http://x:y@hub/devstoreaccount1/exchange/a":       "",
	} {
		name, err := anyHost.Name(uri)
		require.Equal(t, want, name, uri)
		if want == "" {
			require.Equal(t, domain.Invalid, domain.KindOf(err), uri)
		}
		_, err = known.Name(uri)
		require.Equal(t, domain.Invalid, domain.KindOf(err), uri)
	}
}
