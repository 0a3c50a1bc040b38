package node

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	selfsigned "github.com/messagehub/messagehub/cosmos/embedded/certificate"
)

// Any client can begin handshakes, so unreadable certificate files must be
// logged only once.
func TestACertificateThatIsNotRenewed_IsLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	_, err := selfsigned.Load(dir, "127.0.0.1")
	require.NoError(t, err)
	files := config.TLS{Certificate: filepath.Join(dir, selfsigned.FileName), Key: filepath.Join(dir, selfsigned.KeyName)}
	var log bytes.Buffer
	c, err := loadCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	hidden := files.Key + ".away"
	for lines := 1; lines <= 2; lines++ {
		require.NoError(t, os.Rename(files.Key, hidden))
		for range 3 {
			served, err := c.get(nil)
			require.NoError(t, err)
			require.NotNil(t, served)
		}
		require.Equal(t, lines, bytes.Count(log.Bytes(), []byte("was not renewed")))
		require.NoError(t, os.Rename(hidden, files.Key))
		_, err = c.get(nil)
		require.NoError(t, err)
	}
}

// A handshake may occur after only one of the two files of a renewed
// certificate was written, and both files may have the same modification time.
// The next handshake must use the renewed certificate.
func TestACertificateThatIsHalfRenewed_IsReadAgain(t *testing.T) {
	dir, renewed := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, renewed} {
		_, err := selfsigned.Load(d, "127.0.0.1")
		require.NoError(t, err)
	}
	files := config.TLS{Certificate: filepath.Join(dir, selfsigned.FileName), Key: filepath.Join(dir, selfsigned.KeyName)}
	c, err := loadCertificate(files, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	before, at := c.loaded, time.Now().Add(time.Minute)
	for _, name := range []string{selfsigned.FileName, selfsigned.KeyName} {
		served, err := c.get(nil)
		require.NoError(t, err)
		require.Equal(t, before.Certificate, served.Certificate)
		require.NoError(t, os.Rename(filepath.Join(renewed, name), filepath.Join(dir, name)))
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, at))
	}
	served, err := c.get(nil)
	require.NoError(t, err)
	require.NotEqual(t, before.Certificate, served.Certificate)
}
