package main_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestDocuments_NameOnlyWhatExists checks each link, test, file and make target
// that a Markdown file of the tree names.
func TestDocuments_NameOnlyWhatExists(t *testing.T) {
	documents, problems, err := checkDocuments(os.DirFS(moduleRoot(t)))
	require.NoError(t, err)
	require.Contains(t, documents, "README.md")
	require.Contains(t, documents, "bench/simulate/GUARANTEES.md")
	require.Contains(t, documents, ".github/CONTRIBUTING.md")
	require.Empty(t, problems)
}

func TestCheckDocuments_ReportsEachProblem(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"a file", "[a](a.go), [b](sub/b.md)", ""},
		{"a folder", "[sub](sub)", ""},
		{"an address", "[a](https://example.org/none)", ""},
		{"a missing file", "one\n[x](none.go)", "doc/page.md:2: link to none.go: no such file"},
		{"a missing picture", "![x](none.svg)", "doc/page.md:1: link to none.svg: no such file"},
		{"a file outside the tree", "[x](../../a.go)", "doc/page.md:1: link to ../../a.go: no such file"},
		{"a heading", "[x](sub/b.md#what-it-costs-in-ru-1)", ""},
		{"a heading of the page", "# Top\n[x](#top)", ""},
		{"the second heading of a name", "# Top\n# Top\n[x](#top-1)", ""},
		{"a missing heading", "[x](sub/b.md#top)", "doc/page.md:1: link to sub/b.md#top: no such heading"},
		{"a heading in a block of code", "```\n# top\n```\n[x](#top)", "doc/page.md:4: link to #top: no such heading"},
		{"a heading of a Go file", "[x](a.go#top)", "doc/page.md:1: link to a.go#top: no such heading"},
		{"a link in a block of code", "```\n[x](none.go)\n```", ""},
		{"a link in code", "`[x](none.go)`", ""},
		{"tests", "`TestA`, `FuzzA`, BenchmarkA and `TestA/with_a_name`", ""},
		{"a missing test", "one\n\n`TestB`", "doc/page.md:3: test TestB: no such function"},
		{"a file in code", "`api/a.go`", ""},
		{"a file in code below the page", "`sub/b.md`", ""},
		{"a missing file in code", "`api/none.go`", "doc/page.md:1: file api/none.go: no such file"},
		{"a path that is no file", "`/api/none`, `application/json`, `api/…`", ""},
		{"a target", "`make test`, `make test ARGS=x`", ""},
		{"a missing target", "`make tea`", "doc/page.md:1: make tea: no such target"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems, err := checkDocuments(fstest.MapFS{
				"Makefile":           {Data: []byte("help:\ntest: help\n\t@make tea\n")},
				"api/a.go":           {Data: []byte("package a\n")},
				"doc/page.md":        {Data: []byte(tc.text)},
				"doc/a.go":           {Data: []byte("package a\n")},
				"doc/a_test.go":      {Data: []byte("package a\n\nfunc TestA(t *testing.T) {}\nfunc FuzzA(f *testing.F) {}\nfunc BenchmarkA(b *testing.B) {}\n")},
				"doc/sub/b.md":       {Data: []byte("## What it `costs`, in RU (1)\n")},
				"doc/testdata/c.md":  {Data: []byte("[x](none.go)\n")},
				".hidden/d.md":       {Data: []byte("[x](none.go)\n")},
				"doc/sub/b_linux.go": {Data: []byte("package b\n")},
			})
			require.NoError(t, err)
			if tc.want == "" {
				require.Empty(t, problems)
			} else {
				require.Equal(t, []string{tc.want}, problems)
			}
		})
	}
}

var (
	documentLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inlineCode   = regexp.MustCompile("`[^`\n]+`")
	testName     = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	makeCommand  = regexp.MustCompile("^`make ([a-z][a-z-]*)")
	treePath     = regexp.MustCompile("^`(?:\\./)?((?:api|bench|cmd|cosmos|deploy|domain|repository)/[\\w./-]+)`$")
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// checkDocuments returns the names of the Markdown files in tree, and a
// sentence for each link, test, file and make target that they name but that
// does not exist. It skips files below testdata, which are samples.
func checkDocuments(tree fs.FS) (documents, problems []string, err error) {
	tests := make(map[string]bool)
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		switch {
		case entry.IsDir() && name != "." && name != ".github" && (strings.HasPrefix(base, ".") || base == "testdata"):
			return fs.SkipDir
		case path.Ext(name) == ".md":
			documents = append(documents, name)
		case strings.HasSuffix(name, "_test.go"):
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			for _, match := range testFunction.FindAllSubmatch(text, -1) {
				tests[string(match[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	makefile, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		return nil, nil, err
	}
	targets := make(map[string]bool)
	for _, match := range makeTarget.FindAllSubmatch(makefile, -1) {
		targets[string(match[1])] = true
	}
	for _, name := range documents {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, nil, err
		}
		for i, line := range proseLines(string(text)) {
			for _, problem := range checkLine(tree, name, line, tests, targets) {
				problems = append(problems, fmt.Sprintf("%s:%d: %s", name, i+1, problem))
			}
		}
	}
	return documents, problems, nil
}

// checkLine returns the faults in a line of the Markdown file name.
func checkLine(tree fs.FS, name, line string, tests, targets map[string]bool) (problems []string) {
	for _, match := range documentLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
		if problem := checkLink(tree, name, match[1]); problem != "" {
			problems = append(problems, fmt.Sprintf("link to %s: %s", match[1], problem))
		}
	}
	for _, test := range testName.FindAllString(line, -1) {
		if !tests[test] {
			problems = append(problems, fmt.Sprintf("test %s: no such function", test))
		}
	}
	for _, code := range inlineCode.FindAllString(line, -1) {
		if match := makeCommand.FindStringSubmatch(code); match != nil && !targets[match[1]] {
			problems = append(problems, fmt.Sprintf("make %s: no such target", match[1]))
		}
		match := treePath.FindStringSubmatch(code)
		if match != nil && !exists(tree, path.Clean(match[1])) && !exists(tree, path.Join(path.Dir(name), match[1])) {
			problems = append(problems, fmt.Sprintf("file %s: no such file", match[1]))
		}
	}
	return problems
}

// checkLink returns the fault of a link in the Markdown file name, or "" if the
// target exists. It does not check links to other sites.
func checkLink(tree fs.FS, name, link string) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	target, heading, hasHeading := strings.Cut(link, "#")
	file := name
	if target != "" {
		file = path.Join(path.Dir(name), target)
	}
	if !exists(tree, file) {
		return "no such file"
	}
	if !hasHeading {
		return ""
	}
	text, err := fs.ReadFile(tree, file)
	if err != nil || path.Ext(file) != ".md" || !slices.Contains(anchors(string(text)), heading) {
		return "no such heading"
	}
	return ""
}

func exists(tree fs.FS, name string) bool {
	_, err := fs.Stat(tree, name)
	return err == nil
}

// anchors returns the URL fragments that GitHub generates for the headings of a
// Markdown text: lower case, without punctuation, with hyphens instead of
// spaces, and numbered if a heading occurs more than once.
func anchors(text string) []string {
	count := make(map[string]int)
	found := make(map[string]bool)
	for _, line := range proseLines(text) {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		anchor = strings.ReplaceAll(anchor, " ", "-")
		if n := count[anchor]; n > 0 {
			found[fmt.Sprintf("%s-%d", anchor, n)] = true
		} else {
			found[anchor] = true
		}
		count[anchor]++
	}
	return slices.Collect(maps.Keys(found))
}

// proseLines returns the lines of a Markdown text. Lines in fenced code blocks
// are replaced by empty lines.
func proseLines(text string) []string {
	lines := strings.Split(text, "\n")
	isCode := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			isCode = !isCode
		}
		if fence || isCode {
			lines[i] = ""
		}
	}
	return lines
}
