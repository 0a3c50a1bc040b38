package hubclient_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadme_LinksToExistingFiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllSubmatch(readme, -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		_, err := os.Stat(string(link[1]))
		require.NoError(t, err)
	}
}
