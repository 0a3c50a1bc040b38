//go:build unix

package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestConfigFile_WarnsOfASecretThatOthersMayRead(t *testing.T) {
	const secret, plain = "admin: {token: c2VjcmV0LWVub3VnaA}\n", "listen: 127.0.0.1:0\n"
	for _, tc := range []struct {
		text  string
		mode  fs.FileMode
		warns bool
	}{
		{secret, 0o600, false},
		{secret, 0o400, false},
		{secret, 0o640, false},
		{secret, 0o644, true},
		{secret, 0o660, true},
		{secret, 0o602, true},
		{plain, 0o644, false},
	} {
		file := filepath.Join(t.TempDir(), "hub.yaml")
		require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
		require.NoError(t, os.Chmod(file, tc.mode))
		c, err := config.Load(config.Inputs{File: file, Environ: []string{"MESSAGEHUB_ADMIN_TOKEN=another-token-than-that"}})
		require.NoError(t, err)
		if !tc.warns {
			require.Empty(t, c.Warnings(), "%04o", tc.mode)
			continue
		}
		require.Len(t, c.Warnings(), 1, "%04o", tc.mode)
		require.Contains(t, c.Warnings()[0], file)
		require.NotContains(t, c.Warnings()[0], "c2VjcmV0LWVub3VnaA")
	}
}
