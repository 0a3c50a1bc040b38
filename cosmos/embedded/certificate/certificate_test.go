package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrite_MakesAFileThatClientsCanTrust(t *testing.T) {
	dir := t.TempDir()
	cert, err := Load(dir, "localhost", "127.0.0.1")
	require.NoError(t, err)
	again, err := Load(dir, "127.0.0.1")
	require.NoError(t, err)
	require.Equal(t, cert.pem, again.pem, "it is kept")
	other, err := Load(dir, "elsewhere")
	require.NoError(t, err)
	require.NotEqual(t, cert.pem, other.pem, "but for other hosts")
	info, err := os.Stat(filepath.Join(dir, KeyName))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = cert.Config()
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(dir, "trust.crt")
	require.NoError(t, cert.Write(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(text))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
}
