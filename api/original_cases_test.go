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

// TestTheListOfTheOriginalsCasesNamesTests: a list that names tests which are gone
// would prove nothing.
func TestTheListOfTheOriginalsCasesNamesTests(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, dir := range []string{".", "../domain", "../repository", "../cosmos", "../cmd"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllSubmatch(text, -1) {
				there[string(m[1])] = true
			}
			return err
		}))
	}
	for _, list := range []string{"ORIGINAL.md", "servicebus/ORIGINAL.md"} {
		text, err := os.ReadFile(list)
		require.NoError(t, err)
		named := regexp.MustCompile("`(Test[A-Z0-9]\\w+)`").FindAllSubmatch(text, -1)
		require.Greater(t, len(named), 40)
		for _, m := range named {
			require.True(t, there[string(m[1])], "%s: there is no test %s", list, m[1])
		}
	}
}
