package domainclient_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadme_QuotesTheRecipesUnchanged(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	quotes := regexp.MustCompile("(?s)\\]\\((testdata/recipes/[^)]+)\\):\n\n```[a-z]+\n(.*?)```\n").FindAllSubmatch(readme, -1)
	require.Len(t, quotes, 4)
	for _, quote := range quotes {
		recipe, err := os.ReadFile(filepath.Join("..", string(quote[1])))
		require.NoError(t, err)
		require.Equal(t, string(recipe), string(quote[2]), "%s", quote[1])
	}
}
