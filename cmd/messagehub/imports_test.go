package main_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// A row says what some packages may import of ours, and why no more. Packages
// are named by their folder; "x/..." is x and all below it. What is not ours is
// free, unless the row says otherwise.
type row struct {
	packages []string
	may      []string
	why      string

	// tests is what their test files may import besides.
	tests []string

	// pure packages import nothing but the standard library, and of that
	// nothing that reaches outside the process.
	pure bool
}

// everything is the pattern that any package of ours matches.
const everything = "..."

// A test may import what its package may, the package itself, and what is
// listed here or in its row: the rules, the ports, their oracle and their suite.
// Rows without tests of their own to list stay strangers in their tests too.
// The adapter of one side is never in the tests of the other: where a test needs
// both, it is a test of the node, and stands in cmd or bench.
var (
	rulesAndOracle = []string{"domain", "domain/hub", "repository", "repository/memory", "repository/repositorytest", "repository/content"}
	storageTests   = append(slices.Clip(rulesAndOracle), "cosmos/faulty", "cosmos/accounttest", "cosmos/embedded/...")
	busTests       = append(slices.Clip(rulesAndOracle), "api/servicebus/embedded/...", "api/servicebus/internal/bustest", "repository/content/embedded")
)

// toolkit lists the packages that hold what engines and servers of any kind need. They
// know no message of ours, so that both sides may share them.
var toolkit = []string{
	"cosmos/embedded/accept",
	"cosmos/embedded/certificate",
	"cosmos/embedded/checksum",
	"cosmos/embedded/clock",
	"cosmos/embedded/connlimit",
	"cosmos/embedded/datafolder",
	"cosmos/embedded/httpserve",
	"cosmos/embedded/loopback",
}

// table is the import rule of the house. A new package needs a row, so that
// where it belongs is decided once, and on purpose.
var table = []row{
	{
		packages: []string{"domain"},
		pure:     true,
		why:      "rules stay pure and test in milliseconds",
	},
	{
		packages: []string{"repository"},
		may:      []string{"domain"},
		tests:    rulesAndOracle,
		why:      "a port speaks the words of the rules, never those of a store",
	},
	{
		packages: []string{"domain/hub"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/delivery"},
		may:      []string{"domain", "repository"},
		tests:    append(slices.Clip(rulesAndOracle), "domain/delivery/deliverytest"),
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/delivery/deliverytest"},
		may:      []string{"domain", "domain/delivery", "repository", "repository/repositorytest"},
		why:      "the promises of an engine hold over every store, so it knows none",
	},
	{
		packages: []string{"domain/filter"},
		may:      []string{"domain"},
		why:      "expressions are evaluated on values alone",
	},
	{
		packages: []string{"domain/publish"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/subscribe"},
		may:      []string{"domain", "domain/filter", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/replay"},
		may:      []string{"domain", "domain/filter", "repository"},
		tests:    rulesAndOracle,
		why:      "use cases need ports, and no adapter behind them",
	},
	{
		packages: []string{"domain/inspect"},
		may:      []string{"domain", "domain/delivery", "domain/filter", "domain/subscribe", "repository"},
		tests:    rulesAndOracle,
		why:      "it reads what the other use cases keep, by the ports, and changes nothing",
	},
	{
		packages: []string{"repository/memory"},
		may:      []string{"domain", "repository"},
		tests:    rulesAndOracle,
		why:      "the oracle judges every store, so it knows none",
	},
	{
		packages: []string{"repository/repositorytest"},
		may:      []string{"domain", "repository", "bench/ledger"},
		tests:    rulesAndOracle,
		why:      "the contract judges every store, so it knows none; what was lost is judged as everywhere, by the ledger",
	},
	{
		packages: []string{"repository/content"},
		may:      []string{"domain", "repository", "cosmos/embedded/datafolder"},
		tests:    append(slices.Clip(rulesAndOracle), "repository/content/embedded"),
		why:      "an adapter, replaceable; how a folder is made durable is no matter of objects",
	},
	{
		packages: []string{"repository/content/embedded"},
		may:      toolkit,
		why:      "if the account knew our objects, tests would prove only themselves; the toolkit knows none",
	},
	{
		packages: []string{"cosmos/client"},
		may:      []string{"domain"},
		tests:    []string{"cosmos/faulty", "cosmos/embedded"},
		why:      "one way to speak to Cosmos for every adapter; it knows no document",
	},
	{
		packages: []string{"cosmos"},
		may:      []string{"domain", "repository", "cosmos/client"},
		tests:    storageTests,
		why:      "an adapter, replaceable; cosmos and api never meet",
	},
	{
		packages: []string{"cosmos/push"},
		may:      []string{"domain", "repository", "cosmos/client"},
		tests:    append(slices.Clip(storageTests), "domain/delivery", "domain/delivery/deliverytest"),
		why:      "an adapter, replaceable; it knows no document of cosmos",
	},
	{
		packages: []string{"cosmos/accounttest"},
		may:      []string{"cosmos/client", "cosmos/embedded", "cosmos/faulty", "repository", "repository/memory"},
		why:      "the account that the tests of every adapter of Cosmos share; it knows no document",
	},
	{
		packages: []string{"cosmos/faulty"},
		why:      "it breaks HTTP calls, whatever they say",
	},
	{
		packages: toolkit,
		may:      toolkit,
		why:      "the toolkit serves engines and servers of any kind and needs only itself",
	},
	{
		packages: []string{"cosmos/embedded/..."},
		may:      []string{"cosmos/embedded/..."},
		why:      "if the engine knew our messages, tests would prove only themselves",
	},
	{
		packages: []string{"api"},
		may:      []string{"domain", "domain/hub", "domain/inspect", "domain/publish", "domain/replay", "domain/subscribe", "api/internal/cloudevent", "api/internal/eventjson"},
		tests:    rulesAndOracle,
		why:      "edges decode, call, encode; cosmos and api never meet",
	},
	{
		packages: []string{"api/servicebus", "api/servicebus/contentrequest", "api/servicebus/ingest"},
		may:      []string{"domain", "domain/hub", "api/internal/eventjson", "api/servicebus/contract", "api/servicebus/internal/busclient", "api/servicebus/internal/receiver"},
		tests:    busTests,
		why:      "edges decode, call, encode; cosmos and api never meet",
	},
	{
		packages: []string{"api/webhook"},
		may:      []string{"domain"},
		tests:    rulesAndOracle,
		why:      "it sends what the push side has taken, and knows neither streams nor stores",
	},
	{
		packages: []string{"api/internal/eventjson"},
		may:      []string{"domain"},
		why:      "one form of an event, whichever edge it comes to",
	},
	{
		packages: []string{"api/internal/cloudevent"},
		may:      []string{"domain", "api/internal/eventjson"},
		why:      "the general form of an event; which events the hub itself knows is for eventjson",
	},
	{
		packages: []string{"api/servicebus/contract"},
		why:      "what is on the wire is agreed with others, and changes for none of our reasons",
	},
	{
		packages: []string{"api/servicebus/internal/busclient"},
		tests:    []string{"api/servicebus/embedded"},
		why:      "it connects, sends and receives, whatever the messages say; domain teams get it with domainclient, and no hub",
	},
	{
		packages: []string{"api/servicebus/internal/receiver"},
		may:      []string{"api/servicebus/internal/busclient"},
		tests:    []string{"api/servicebus/embedded", "api/servicebus/internal/bustest"},
		why:      "a loop receives messages of any system, and knows none",
	},
	{
		packages: []string{"api/servicebus/internal/bustest"},
		may:      []string{"domain", "api/servicebus/contract", "api/servicebus/embedded", "api/servicebus/internal/busclient"},
		why:      "tests of the edge share a bus, and only they import it",
	},
	{
		packages: []string{"api/servicebus/domainclient"},
		may:      []string{"api/servicebus/contract", "api/servicebus/internal/busclient", "api/servicebus/internal/receiver"},
		tests:    busTests,
		why:      "domain teams import it, and get no hub along with it",
	},
	{
		packages: []string{"api/servicebus/embedded/..."},
		may:      append([]string{"api/servicebus/embedded/...", "cosmos/embedded/disk"}, toolkit...),
		tests:    []string{"cosmos/embedded/disk/disktest"},
		why:      "if the bus knew our messages, tests would prove only themselves; disk and toolkit know none",
	},
	{
		packages: []string{"cmd/node/config"},
		may:      []string{"domain", "api/servicebus/contract", "cosmos/embedded/loopback"},
		why:      "a configuration names the parts, it does not build them; which addresses are safe is decided in one place",
	},
	{
		packages: []string{"cmd/terminal"},
		why:      "every program may use it, so it knows none of our words",
	},
	{
		packages: []string{"cmd/messagehub/internal/energymarket"},
		may:      []string{"bench/ledger"},
		why:      "it makes and accounts for data, and starts nothing",
	},
	{
		packages: []string{"cmd/messagehub/internal/hubclient"},
		may:      []string{"domain", "domain/hub", "cmd/node/config", "cosmos/embedded/clock", "cosmos/embedded/loopback"},
		why:      "it sees a hub as any client does, so it starts none and opens no store",
	},
	{
		packages: []string{"cmd/messagehub/internal/checkreport"},
		may:      []string{"domain/hub", "cmd/terminal"},
		why:      "it prints what a check has found, wherever that ran",
	},
	{
		packages: []string{"cmd/messagehub/internal/demo"},
		may: []string{
			"domain", "domain/hub", "api/webhook", "cosmos/embedded/httpserve", "bench/ledger", "cmd/node", "cmd/node/config", "cmd/terminal",
			"cmd/messagehub/internal/energymarket", "cmd/messagehub/internal/hubclient", "cmd/messagehub/internal/checkreport",
		},
		why: "it starts a hub as the command does, and looks at it from outside, also as a receiver of its calls",
	},
	{
		packages: []string{"cmd/messagehub/internal/emulator"},
		may:      append([]string{"cosmos/embedded", "api/servicebus/embedded", "repository/content/embedded", "cmd/node/config"}, toolkit...),
		why:      "it serves an engine to any client, and starts no hub",
	},
	{
		packages: []string{"cmd/messagehub/internal/subscriptionfile"},
		may:      []string{"domain", "domain/filter", "cmd/messagehub/internal/hubclient"},
		why:      "it compares a file with what a hub shows, and changes nothing",
	},
	{
		packages: []string{"cmd/messagehub/internal/certify"},
		may:      append([]string{"api/webhook", "domain", "cmd/terminal"}, toolkit...),
		why:      "it sees a receiver as a hub does, and starts none",
	},
	{
		packages: []string{"cmd/messagehub/internal/receiver"},
		may:      append([]string{"api/webhook", "cmd/terminal"}, toolkit...),
		tests:    []string{"domain"},
		why:      "it receives calls of any hub, and starts none",
	},
	{
		packages: []string{"cmd/node", "cmd/messagehub"},
		may:      []string{everything},
		why:      "the one place that knows which adapter is in use",
	},
	{
		packages: []string{"bench/ledger"},
		pure:     true,
		why:      "it judges what clients of a hub see, and so needs nothing of the hub; and every test may use it",
	},
	{
		packages: []string{"bench/model/smallsaves"},
		pure:     true,
		why:      "a model that knew the code would have its faults",
	},
	{
		packages: []string{"bench/..."},
		may: []string{
			"domain/...", "repository/...", "cosmos/...", "api/...", "bench/...",
			"cmd/node/...", "cmd/terminal",
		},
		why: "it measures and simulates the node that ships, not the command around it",
	},
}

// unsafeForPure are the packages by which the standard library reaches outside
// the process. Package time is not among them: a rule may be told the time.
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
	for _, pattern := range absent(table, files) {
		t.Errorf("the table names %s, and no package matches it: remove it from the table", pattern)
	}
}

func TestImportsCatches(t *testing.T) {
	const ours = "example.org/hub"
	for _, tc := range []struct {
		name    string
		file    string
		imports []string
		want    string // part of the one violation; none when empty
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
	got := absent([]row{
		{packages: []string{"domain", "domain/clock"}},
		{packages: []string{"domain/hub/..."}, may: []string{"domain", everything, "api/..."}, tests: []string{"cosmos"}},
		{packages: []string{"domain/clock/..."}, tests: []string{"cosmos"}},
	}, files)
	want := []string{"domain/clock", "api/...", "cosmos", "domain/clock/..."}
	if !slices.Equal(got, want) {
		t.Errorf("absent: %q, want %q", got, want)
	}
}

// TestImportTable holds the table itself to what it promises.
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

// An importingFile is one Go file and the paths it imports.
type importingFile struct {
	name    string // below the module's root, with slashes
	imports []importSpec
}

type importSpec struct {
	path string
	line int
}

// readImports reads the import clauses of every Go file that the go command
// would build on some system. Nested modules are no part of this one.
func readImports(tree fs.FS) ([]importingFile, error) {
	var files []importingFile
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		ignored := strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
		if entry.IsDir() {
			if name == "." {
				return nil
			}
			_, err := fs.Stat(tree, path.Join(name, "go.mod"))
			isModule := err == nil
			if ignored || base == "testdata" || base == "vendor" || isModule {
				return fs.SkipDir
			}
			return nil
		}
		if ignored || path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file := importingFile{name: name}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
			}
			file.imports = append(file.imports, importSpec{imported, positions.Position(spec.Pos()).Line})
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

// violations returns one sentence for each import of files that the table does
// not allow: where it is, what it imports, and why not.
func violations(module string, files []importingFile) []string {
	var found []string
	for _, file := range files {
		pkg := path.Dir(file.name)
		r, ok := rowOf(pkg)
		if !ok {
			found = append(found, fmt.Sprintf("%s: no row for package %s: add a row to the table in cmd/messagehub/imports_test.go, and say why it may import what it does", file.name, pkg))
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
				// Allowed by the row, or not for the row to say.
			case strings.Contains(strings.Split(spec.path, "/")[0], "."):
				report(r.why + " (only the standard library)")
			case slices.Contains(unsafeForPure, spec.path):
				report(r.why + " (nothing that reaches outside the process)")
			}
		}
	}
	return found
}

// absent returns the patterns of rows, each once, that match no package of files.
func absent(rows []row, files []importingFile) []string {
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

// rowOf returns the row that speaks of package pkg.
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

// matches reports whether pattern names package pkg.
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

// source returns a Go file that imports what is asked, from line 3 on.
func source(imports []string) *fstest.MapFile {
	text := "package p\n\n"
	for _, imported := range imports {
		text += fmt.Sprintf("import _ %q\n", imported)
	}
	return &fstest.MapFile{Data: []byte(text)}
}

// moduleRoot returns the folder of the go.mod above the test.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}

// modulePath returns the module's name from its go.mod, so that a renamed
// module does not make every import of ours look like somebody else's.
func modulePath(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	t.Fatal("go.mod names no module")
	return ""
}
