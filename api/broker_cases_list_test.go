package api_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheListOfCasesNamesTestsThatExist(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("broker", "CASES.md"))
	require.NoError(t, err)
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	}))
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllSubmatch(list, -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		require.Contains(t, tests.String(), "func "+string(name[1])+"(", "no such test")
	}
}
