package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// Limits for the language of the source code. CONTRIBUTING.md explains the
// rules.
const (
	maxOneWordShare    = 0.35 // maximum share of one-word names among a package's unexported functions
	minFunctions       = 10   // packages with fewer functions are not checked
	maxPackagesOfAType = 2    // maximum number of packages that declare an unexported type with the same name
	maxIdioms          = 10.0 // maximum number of idioms per 10,000 words
)

// A sourceTree contains the names and comments in all Go files that are not
// tests.
type sourceTree struct {
	functions map[string][]string // names of unexported functions by package
	types     map[string][]string // packages by the name of an unexported type that they declare
	comments  map[string]string   // text of all comments by package
}

// readSourceTree parses every Go file that is neither a test nor generated.
func readSourceTree(t *testing.T) sourceTree {
	t.Helper()
	tree := sourceTree{functions: make(map[string][]string), types: make(map[string][]string), comments: make(map[string]string)}
	root := moduleRoot(t)
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go"):
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		tree.add(filepath.ToSlash(folder), file)
		return nil
	}))
	return tree
}

func (s *sourceTree) add(folder string, file *ast.File) {
	for _, group := range file.Comments {
		s.comments[folder] += group.Text() + "\n"
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() && d.Name.Name != "main" && d.Name.Name != "init" {
				s.functions[folder] = append(s.functions[folder], d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				named, isType := spec.(*ast.TypeSpec)
				if isType && !named.Name.IsExported() && !slices.Contains(s.types[named.Name.Name], folder) {
					s.types[named.Name.Name] = append(s.types[named.Name.Name], folder)
				}
			}
		}
	}
}

// countNameWords returns the number of words in a camel-case name.
func countNameWords(name string) int {
	words, letters := 1, []rune(name)
	for i := 1; i < len(letters); i++ {
		if unicode.IsUpper(letters[i]) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			words++
		}
	}
	return words
}

// adverbs lists prepositions and adverbs that must not be the name of a
// function, because they do not say what the function does.
var adverbs = strings.Fields("of at before after through elsewhere again twice on in by from to with without into onto over under behind " +
	"beyond beside between until since toward towards across along around off out up down here there now then once always never soon late " +
	"later early apart together away back aside anew afresh ahead per via within still yet already only also too very")

func TestNames_OfFunctionsAreNoPrepositionsOrAdverbs(t *testing.T) {
	var found []string
	for folder, names := range readSourceTree(t).functions {
		for _, name := range names {
			if slices.Contains(adverbs, name) {
				found = append(found, folder+"."+name)
			}
		}
	}
	slices.Sort(found)
	require.Empty(t, found, "name the function by a verb and its object")
}

func TestNames_OfFunctionsSayWhatTheyDoToWhat(t *testing.T) {
	var found []string
	for folder, names := range readSourceTree(t).functions {
		oneWord := 0
		for _, name := range names {
			if countNameWords(name) == 1 {
				oneWord++
			}
		}
		share := float64(oneWord) / float64(len(names))
		if len(names) < minFunctions || share <= maxOneWordShare {
			require.NotContains(t, manyShortNames, folder, "the exception is no longer needed")
			continue
		}
		if _, isException := manyShortNames[folder]; !isException {
			found = append(found, fmt.Sprintf("%s: %d of %d unexported functions have a name of one word", folder, oneWord, len(names)))
		}
	}
	slices.Sort(found)
	require.Empty(t, found)
}

func TestNames_OfTypesMeanOneThing(t *testing.T) {
	var found []string
	for name, folders := range readSourceTree(t).types {
		if _, isException := sharedTypeNames[name]; len(folders) > maxPackagesOfAType && !isException {
			slices.Sort(folders)
			found = append(found, fmt.Sprintf("%s: %s", name, strings.Join(folders, " ")))
		}
	}
	slices.Sort(found)
	require.Empty(t, found)
}

// idioms matches phrases that are difficult for readers whose first language is
// not English. CONTRIBUTING.md lists the replacements.
var idioms = regexp.MustCompile(`(?i)\b(whoever|nobody|anew|nothing but|none but|all but|but for|any more|so many|so much|go(es|ing)? on|come(s)? of|` +
	`came of|is over|be over|mend(s|ed|ing)?|hold(s|ing)? to|befalls?|doom(ed)?|told|tell(s|ing)? of|there (is|are) none|none of (them|it|these|those)|` +
	`as ever|at all|no more than|no less than|is to be|are to be|no longer than|of its own accord|all there is)\b`)

func TestProse_HasFewIdioms(t *testing.T) {
	tree := readSourceTree(t)
	texts := tree.comments
	root := moduleRoot(t)
	documents, _, err := checkDocuments(os.DirFS(root))
	require.NoError(t, err)
	for _, name := range documents {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	words, found := 0, 0
	counts := make(map[string]int)
	for name, text := range texts {
		words += len(strings.Fields(text))
		counts[name] = len(idioms.FindAllString(text, -1))
		found += counts[name]
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	for _, name := range names[:min(20, len(names))] {
		t.Logf("%d in %s", counts[name], name)
	}
	share := float64(found) / float64(words) * 10_000
	t.Logf("%d idioms in %d words: %.1f in 10,000", found, words, share)
	require.LessOrEqual(t, share, maxIdioms)
}

// manyShortNames lists packages that may have many functions with one-word
// names, with a reason for each.
var manyShortNames = map[string]string{}

// sharedTypeNames lists names of unexported types that more than two packages
// may declare, with a reason for each.
var sharedTypeNames = map[string]string{}
