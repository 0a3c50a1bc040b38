package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sample = "./testdata/sample"

func TestErrorBranches_AreFoundByTypes(t *testing.T) {
	packages, err := loadPackages([]string{sample})
	require.NoError(t, err)
	require.Len(t, packages, 1)
	var found []int
	for _, b := range packages[0].findBranches() {
		found = append(found, b.at.Line)
	}
	text, err := os.ReadFile(filepath.Join(sample, "sample.go"))
	require.NoError(t, err)
	var marked []int
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasSuffix(line, "// branch") {
			marked = append(marked, i+1)
		}
	}
	require.Equal(t, marked, found)
}

// writeProfile runs the test of the sample package, and writes its coverage profile.
func writeProfile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.out")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-coverprofile="+path, sample).CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

func TestReport_NamesUnreachedBranches(t *testing.T) {
	path := writeProfile(t)
	list := filepath.Join(t.TempDir(), "impossible.txt")
	require.NoError(t, os.WriteFile(list, []byte("# a comment\n\nsample/sample.go Loop#1 no reason at all\n"), 0o600))
	var out bytes.Buffer
	args := []string{"-packages", sample, "-impossible", list, path}
	require.NoError(t, runTool(args, &out))
	text := out.String()
	require.Contains(t, text, "testdata/sample: 1 of 16 error branches reached, 6.2 %; 1 more are impossible\n")
	require.Contains(t, text, "\ttestdata/sample/sample.go:76 (Cases#1): return \"refused\" // branch\n")
	require.NotContains(t, text, "(Ifs#2)", "it was reached")
	require.Contains(t, text, "sample/sample.go Loop#1: no reason at all\n")

	require.ErrorContains(t, runTool(append([]string{"-min", "90"}, args...), &out), "6.2 % of the error branches were reached, want 90 %")
	require.NoError(t, runTool(append([]string{"-min", "5"}, args...), &out))

	require.NoError(t, os.WriteFile(list, []byte("sample/sample.go Loop#9 there is none\n"), 0o600))
	require.ErrorContains(t, runTool(args, &out), "there is no such error branch")
	require.NoError(t, os.WriteFile(list, []byte("sample/sample.go Ifs#2 it is reached\n"), 0o600))
	require.ErrorContains(t, runTool(args, &out), "listed as impossible but was reached")
	require.NoError(t, os.WriteFile(list, []byte("sample/sample.go Ifs#2\n"), 0o600))
	require.ErrorContains(t, runTool(args, &out), "and the reason")
}

func TestProfiles_AreMerged(t *testing.T) {
	folder := t.TempDir()
	var paths []string
	for name, text := range map[string]string{
		"a.out": "mode: set\nm/f.go:1.10,3.2 1 0\nm/f.go:3.2,5.1 2 1\n",
		"b.out": "mode: set\nm/f.go:1.10,3.2 1 1\nm/f.go:3.2,5.1 2 0\nm/f.go:6.1,7.1 1 0\n",
	} {
		paths = append(paths, filepath.Join(folder, name))
		require.NoError(t, os.WriteFile(paths[len(paths)-1], []byte(text), 0o600))
	}
	p, err := readProfiles(paths)
	require.NoError(t, err)
	require.Equal(t, profile{"m/f.go": {
		{sourcePosition{1, 10}, sourcePosition{3, 2}, true}, {sourcePosition{3, 2}, sourcePosition{5, 1}, true}, {sourcePosition{6, 1}, sourcePosition{7, 1}, false},
	}}, p)

	require.NoError(t, os.WriteFile(paths[0], []byte("mode: set\nnonsense\n"), 0o600))
	_, err = readProfiles(paths)
	require.ErrorContains(t, err, ":2 is not a line of a coverage profile")
}

func TestProfile_OfOtherPackageIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.out")
	require.NoError(t, os.WriteFile(path, []byte("mode: set\n"), 0o600))
	err := runTool([]string{"-packages", sample, path}, &bytes.Buffer{})
	require.ErrorContains(t, err, "create one from the current code, with -coverpkg")
}
