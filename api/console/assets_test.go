package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThirdPartyAssets_MatchTheirPackages(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("assets", "SHA256SUMS"))
	require.NoError(t, err)
	for line := range strings.Lines(string(list)) {
		sum, name, isPair := strings.Cut(strings.TrimSpace(line), "  ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		require.True(t, isPair, line)
		content, err := os.ReadFile(filepath.Join("assets", name))
		require.NoError(t, err)
		actual := sha256.Sum256(content)
		require.Equal(t, sum, hex.EncodeToString(actual[:]), name)
	}
}
