package main_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// unsafeForPure lists standard library packages that access something outside
// the process. Package time is not listed, because pure code may have
// parameters of type time.Time.
var unsafeForPure = []string{"net", "net/http", "os", "os/exec", "syscall"}

func TestImports(t *testing.T) {
	root := moduleRoot(t)
	files, err := readImports(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go file found, though this is one: the walk is broken")
	}
	for _, v := range violations(modulePath(t, root), files) {
		t.Error(v)
	}
	for _, pattern := range unmatchedPatterns(table, files) {
		t.Errorf("the table names %s, and no package matches it: remove it from the table", pattern)
	}
}

func TestViolations_FindsForbiddenImports(t *testing.T) {
	const ours = "example.org/hub"
	for _, tc := range []struct {
		name    string
		file    string
		imports []string
		want    string // part of the only violation's text; "" for no violation
	}{
		{"rules on the standard library", "domain/a.go", []string{"strings", "time"}, ""},
		{"rules on somebody's library", "domain/a.go", []string{"github.com/google/uuid"}, "domain/a.go:3: imports github.com/google/uuid"},
		{"rules on a port", "domain/a.go", []string{ours + "/repository"}, "rules stay pure"},
		{"rules on the network", "domain/a.go", []string{"net/http"}, "outside the process"},
		{"tests of rules on somebody's library", "domain/a_test.go", []string{ours + "/domain", "pgregory.net/rapid"}, ""},
		{"tests of rules on a store", "domain/a_test.go", []string{ours + "/repository/memory"}, "rules stay pure"},
		{"a port on the rules", "repository/a.go", []string{ours + "/domain"}, ""},
		{"a port on a store", "repository/a.go", []string{ours + "/cosmos"}, "never those of a store"},
		{"a use case on an edge", "domain/hub/a.go", []string{ours + "/api"}, "use cases need ports"},
		{"a use case's test on the oracle", "domain/hub/a_test.go", []string{ours + "/repository/memory"}, ""},
		{"the engine on an adapter", "domain/delivery/a.go", []string{ours + "/cosmos/push"}, "use cases need ports"},
		{"the store's test on the engine", "cosmos/push/a_test.go", []string{ours + "/domain/delivery/deliverytest"}, ""},
		{"a use case on the oracle", "domain/hub/a.go", []string{ours + "/repository/memory"}, "use cases need ports"},
		{"the oracle on an adapter", "repository/memory/a.go", []string{ours + "/cosmos"}, "judges every store"},
		{"the contract on the ledger", "repository/repositorytest/a.go", []string{ours + "/bench/ledger"}, ""},
		{"the contract on an adapter", "repository/repositorytest/a.go", []string{ours + "/cosmos"}, "judges every store"},
		{"content on its port", "repository/content/a.go", []string{ours + "/repository", ours + "/domain"}, ""},
		{"cosmos on api", "cosmos/a.go", []string{ours + "/api"}, "never meet"},
		{"api on cosmos", "api/a.go", []string{ours + "/cosmos"}, "never meet"},
		{"tests of api on cosmos", "api/a_test.go", []string{ours + "/cosmos/embedded"}, "never meet"},
		{"tests of cosmos on the engine", "cosmos/a_test.go", []string{ours + "/cosmos/embedded", ours + "/cosmos/faulty"}, ""},
		{"the Cosmos client on a port", "cosmos/client/a.go", []string{ours + "/repository"}, "knows no document"},
		{"the Cosmos client on an adapter", "cosmos/client/a.go", []string{ours + "/cosmos"}, "knows no document"},
		{"cosmos on its own stand-in", "cosmos/a.go", []string{ours + "/cosmos/embedded"}, "replaceable"},
		{"the push side on the hub's documents", "cosmos/push/a.go", []string{ours + "/cosmos"}, "knows no document of cosmos"},
		{"faults on the adapter they break", "cosmos/faulty/a.go", []string{ours + "/cosmos"}, "whatever they say"},
		{"the engine on its parts", "cosmos/embedded/query/a.go", []string{ours + "/cosmos/embedded/disk"}, ""},
		{"the engine on our words", "cosmos/embedded/query/a.go", []string{ours + "/domain"}, "prove only themselves"},
		{"the connection limit on the disk", "cosmos/embedded/connlimit/a.go", []string{ours + "/cosmos/embedded/disk"}, "needs only itself"},
		{"an engine on the toolkit", "repository/content/embedded/a.go", []string{ours + "/cosmos/embedded/connlimit", ours + "/cosmos/embedded/loopback"}, ""},
		{"the hub's edge on the toolkit", "api/a.go", []string{ours + "/cosmos/embedded/loopback"}, "never meet"},
		{"tests of the engine on our words", "cosmos/embedded/a_test.go", []string{ours + "/domain"}, "prove only themselves"},
		{"the bus on the disk", "api/servicebus/embedded/a.go", []string{ours + "/cosmos/embedded/disk"}, ""},
		{"the bus on the engine", "api/servicebus/embedded/a.go", []string{ours + "/cosmos/embedded"}, "disk and toolkit know none"},
		{"an edge on use cases", "api/a.go", []string{ours + "/domain/hub", "github.com/go-chi/chi/v5"}, ""},
		{"the sender on a store", "api/webhook/a.go", []string{ours + "/repository/memory"}, "neither streams nor stores"},
		{"an edge on a port", "api/a.go", []string{ours + "/repository"}, "edges decode"},
		{"the configuration on an adapter", "cmd/node/config/a.go", []string{ours + "/cosmos"}, "names the parts"},
		{"an emulator on a hub", "cmd/messagehub/internal/emulator/a.go", []string{ours + "/cmd/node"}, "starts no hub"},
		{"the command's client on a hub", "cmd/messagehub/internal/hubclient/a.go", []string{ours + "/cmd/node"}, "as any client does"},
		{"the demo on a hub", "cmd/messagehub/internal/demo/a.go", []string{ours + "/cmd/node"}, ""},
		{"the demo on a store", "cmd/messagehub/internal/demo/a.go", []string{ours + "/cosmos"}, "from outside"},
		{"the node on anything", "cmd/node/a.go", []string{ours + "/cosmos", ours + "/api", ours + "/bench"}, ""},
		{"bench on the node", "bench/simulate/a.go", []string{ours + "/cmd/node", ours + "/bench"}, ""},
		{"the ledger on the rules", "bench/ledger/a.go", []string{ours + "/domain"}, "needs nothing of the hub"},
		{"bench on the command", "bench/a.go", []string{ours + "/cmd/messagehub"}, "not the command around it"},
		{"a package without a row", "domain/clock/a.go", nil, "domain/clock/a.go: no row for package domain/clock: add a row"},
		{"a package at the top", "a.go", nil, "no row for package .: add a row"},
		{"a file for another system", "cosmos/a_windows.go", []string{ours + "/api"}, "never meet"},
		{"a file the go command does not build", "cosmos/testdata/a.go", []string{ours + "/api"}, ""},
		{"a name that only begins like ours", "domain/hub/a.go", []string{ours + "-client/api"}, ""},
		{"a folder that only begins like one of the table", "cosmosx/a.go", nil, "no row for package cosmosx"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files, err := readImports(fstest.MapFS{tc.file: source(tc.imports)})
			if err != nil {
				t.Fatal(err)
			}
			got := violations(ours, files)
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("violations: %q, want none", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("violations: %q, want one with %q", got, tc.want)
			}
		})
	}
}

func TestImportTableNamesNoAbsentPackage(t *testing.T) {
	files := []importingFile{{name: "domain/a.go"}, {name: "domain/hub/a.go"}}
	got := unmatchedPatterns([]row{
		{packages: []string{"domain", "domain/clock"}},
		{packages: []string{"domain/hub/..."}, may: []string{"domain", everything, "api/..."}, tests: []string{"cosmos"}},
		{packages: []string{"domain/clock/..."}, tests: []string{"cosmos"}},
	}, files)
	want := []string{"domain/clock", "api/...", "cosmos", "domain/clock/..."}
	if !slices.Equal(got, want) {
		t.Errorf("absent: %q, want %q", got, want)
	}
}

// TestImportTable checks the import table itself.
func TestImportTable(t *testing.T) {
	side := func(pattern string) string { s, _, _ := strings.Cut(pattern, "/"); return s }
	seen := map[string]bool{}
	for _, r := range table {
		if r.why == "" {
			t.Errorf("%s: no reason given", r.packages)
		}
		for _, p := range r.packages {
			if seen[p] {
				t.Errorf("%s has two rows", p)
			}
			seen[p] = true
			for _, q := range slices.Concat(r.may, r.tests) {
				meet := side(p) == "cosmos" && side(q) == "api" || side(p) == "api" && side(q) == "cosmos"
				if meet && !strings.HasPrefix(q, "cosmos/embedded/disk") && !slices.Contains(toolkit, q) {
					t.Errorf("%s may import %s, but cosmos and api never meet", p, q)
				}
			}
		}
	}
}

// violations returns one sentence for each import that the table does not
// allow. It names the file, the import and the rule.
func violations(module string, files []importingFile) []string {
	var found []string
	for _, file := range files {
		pkg := path.Dir(file.name)
		r, ok := rowOf(pkg)
		if !ok {
			found = append(found, fmt.Sprintf("%s: no row for package %s: add a row to the table in cmd/messagehub/import_table_test.go, and say why it may import what it does", file.name, pkg))
			continue
		}
		isTest := strings.HasSuffix(file.name, "_test.go")
		may := r.may
		if isTest {
			may = slices.Concat(r.may, r.tests, []string{pkg})
		}
		for _, spec := range file.imports {
			report := func(because string) {
				found = append(found, fmt.Sprintf("%s:%d: imports %s: %s", file.name, spec.line, spec.path, because))
			}
			dir, isOurs := strings.CutPrefix(spec.path, module+"/")
			switch {
			case isOurs && !slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, dir) }):
				report(fmt.Sprintf("%s (of ours %s may import: %s)", r.why, pkg, list(may)))
			case isOurs || !r.pure || isTest:
				// the row allows this import, or does not restrict it
			case strings.Contains(strings.Split(spec.path, "/")[0], "."):
				report(r.why + " (only the standard library)")
			case slices.Contains(unsafeForPure, spec.path):
				report(r.why + " (nothing that reaches outside the process)")
			}
		}
	}
	return found
}

// unmatchedPatterns returns those patterns in rows that match no package,
// without duplicates.
func unmatchedPatterns(rows []row, files []importingFile) []string {
	packages := make(map[string]bool)
	for _, file := range files {
		packages[path.Dir(file.name)] = true
	}
	var found []string
	for _, r := range rows {
		for _, pattern := range slices.Concat(r.packages, r.may, r.tests) {
			isPresent := false
			for pkg := range packages {
				isPresent = isPresent || matches(pattern, pkg)
			}
			if !isPresent && !slices.Contains(found, pattern) {
				found = append(found, pattern)
			}
		}
	}
	return found
}

// rowOf returns the row of a package.
func rowOf(pkg string) (row, bool) {
	for _, r := range table {
		for _, pattern := range r.packages {
			if matches(pattern, pkg) {
				return r, true
			}
		}
	}
	return row{}, false
}

// matches reports whether a pattern matches a package.
func matches(pattern, pkg string) bool {
	if pattern == everything {
		return true
	}
	if top, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == top || strings.HasPrefix(pkg, top+"/")
	}
	return pkg == pattern
}

func list(patterns []string) string {
	if len(patterns) == 0 {
		return "nothing"
	}
	return strings.Join(patterns, ", ")
}

// source returns a Go file whose imports begin on line 3.
func source(imports []string) *fstest.MapFile {
	text := "package p\n\n"
	for _, imported := range imports {
		text += fmt.Sprintf("import _ %q\n", imported)
	}
	return &fstest.MapFile{Data: []byte(text)}
}
