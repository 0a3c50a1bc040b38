package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func moduleRootOf(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.FromSlash("../../.."))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
	return root
}

// This test fails after a change of code that a mutant patches. Then check whether the rule still exists, and update
// the patch.
func TestEveryMutantFitsTheCode(t *testing.T) {
	all, err := readMutants()
	require.NoError(t, err)
	for _, m := range all {
		changed, err := m.patchedFiles(moduleRootOf(t))
		require.NoError(t, err)
		require.NotEmpty(t, changed)
		for path, source := range changed {
			require.False(t, strings.HasPrefix(path, "bench/") || strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go"),
				"%s changes %s, which is not shipped", m.name, path)
			asItIs, err := os.ReadFile(filepath.Join(moduleRootOf(t), filepath.FromSlash(path)))
			require.NoError(t, err)
			require.NotEqual(t, string(asItIs), source, "%s changes nothing", m.name)
			_, err = parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
			require.NoError(t, err, m.name)
			formatted, err := format.Source([]byte(source))
			require.NoError(t, err, m.name)
			require.Equal(t, string(formatted), source, "%s is not formatted", m.name)
		}
	}
}

func TestThereAreEnoughMutants(t *testing.T) {
	all, err := readMutants()
	require.NoError(t, err)
	seen := make(map[string]string)
	numbered, seeded := regexp.MustCompile(`^\d{2,3}-`), 0
	numbers := make(map[string]string)
	for _, m := range all {
		number := numbered.FindString(m.name)
		require.NotEmpty(t, number, "the mutants are numbered: %s", m.name)
		require.Empty(t, numbers[number], "%s has the number of another", m.name)
		numbers[number] = m.name
		text := fmt.Sprint(m.patches) + m.killer.String()
		require.Empty(t, seen[text], "%s is another one", m.name)
		seen[text] = m.name
		if m.killer.seeded {
			seeded++
		}
	}
	require.GreaterOrEqual(t, seeded, 25, "mutants for the simulation")
}

func TestEveryKillerExists(t *testing.T) {
	all, err := readMutants()
	require.NoError(t, err)
	for _, m := range all {
		if m.killer.seeded {
			continue
		}
		pattern, err := regexp.Compile(m.killer.pattern)
		require.NoError(t, err, m.name)
		tests, err := filepath.Glob(filepath.Join(moduleRootOf(t), filepath.FromSlash(m.killer.pkg), "*_test.go"))
		require.NoError(t, err)
		found := false
		for _, name := range tests {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				f, is := d.(*ast.FuncDecl)
				found = found || is && strings.HasPrefix(f.Name.Name, "Test") && pattern.MatchString(f.Name.Name)
			}
		}
		require.True(t, found, "%s: no test is called %s in %s", m.name, m.killer.pattern, m.killer.pkg)
	}
}

const small = `Rule: it counts up.
Invariant: H1
Killer: simulate

--- a/a.go
+++ b/a.go
@@ -1,3 +1,3 @@
 one
-two
+2
 three
`

func TestPatch_MustFitExactly(t *testing.T) {
	m, err := parseMutant(small)
	require.NoError(t, err)
	p := &m.patches[0]
	for source, want := range map[string]string{
		"one\ntwo\nthree\n":             "one\n2\nthree\n",
		"zero\none\ntwo\nthree\nfour\n": "zero\none\n2\nthree\nfour\n",
	} {
		got, err := p.applyTo(source)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, source := range []string{"one\ntwo\nfour\n", "one\n two\nthree\n", "one\n2\nthree\n", "twenty-one\ntwo\nthree\n", ""} {
		_, err := p.applyTo(source)
		require.ErrorContains(t, err, "does not have these lines", source)
	}
	_, err = p.applyTo("one\ntwo\nthree\none\ntwo\nthree\n")
	require.ErrorContains(t, err, "in 2 places")
}

func TestPatch_MalformedIsRefused(t *testing.T) {
	for what, text := range map[string]string{
		"changes no file":         strings.ReplaceAll(small, "--- a/a.go\n", ""),
		"does not begin":          strings.Replace(small, "+++ b/a.go", "+++ b/b.go", 1),
		"is cut off":              strings.TrimSuffix(small, " three\n"),
		"does not have the lines": strings.Replace(small, "+2\n", "+2\n+2\n", 1),
		"nothing is changed":      strings.Split(small, "@@")[0],
		"is missing above":        strings.Replace(small, "Rule: it counts up.", "", 1),
		"is neither Rule":         strings.Replace(small, "Rule:", "Role:", 1),
		"want simulate, or go":    strings.Replace(small, "Killer: simulate", "Killer: anybody", 1),
	} {
		_, err := parseMutant(text)
		require.ErrorContains(t, err, what, text)
	}
}

func TestReason_IsOneLine(t *testing.T) {
	require.Equal(t, "panic: a / b", reasonOf("=== RUN x\n\npanic: a | b\n\tgoroutine 1\n"))
	require.Equal(t, "H3: 5 before 4", reasonOf("--- FAIL: TestSeeds\n    a_test.go:1: \n\tError Trace:\ta.go\n\tError:      \tH3: 5 before 4\n"))
	require.Equal(t, "H2: twice", reasonOf("906 steps\n--- FAIL: TestSeeds\n    --- FAIL: TestSeeds/7\n        simulate_test.go:31: seed 7: H2: twice\n            at step 5\n"))
	require.Equal(t, "TestThis", failedTest("=== RUN TestThis\n--- FAIL: TestThis (0.1s)\n--- FAIL: TestThat (0.1s)\n"))
}
