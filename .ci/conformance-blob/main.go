// Command conformance-blob runs tests of other projects on the emulator of Blob Storage, and prints
// how many pass:
//
//   - the conformance tests of gocloud.dev, which its driver azureblob runs on a real account
//   - the live tests of azblob, whose URLs are changed from those of Azure to the emulator's
//
// Both modules are pinned by go.mod, copied out of the module cache, and tested there. A test is
// counted if it has no tests below it and is not skipped.
//
//	conformance-blob [-page FILE] PROGRAM [SUITE...]
//
// The file suites/BlobTestServerFactory.ts is for Azurite's own tests, which are run by hand as the
// page of the emulator says.
//
// PROGRAM is the messagehub to test. With -page, the figures replace those in a table of a page.
// The exit status is 0 if the suites ran, even if tests failed.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

//go:embed suites/gocloud.go.txt
var gocloudTest []byte

// A suite is a module with tests.
type suite struct {
	name     string // name, with which its row on the page begins
	module   string
	prepare  func(dir, connection string) error
	packages []string
	run      string // pattern of the tests
	environ  func(connection string) []string
}

var suites = []suite{
	{
		name: "gocloud.dev, conformance of azureblob", module: "gocloud.dev", packages: []string{"./blob/azureblob"}, run: "^TestEmulator$",
		prepare: func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "blob", "azureblob", "emulator_test.go"), gocloudTest, 0o600)
		},
		environ: func(connection string) []string { return []string{"MESSAGEHUB_BLOB_CONNECTION=" + connection} },
	},
	{
		name: "azblob, its live tests", module: "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob",
		packages: []string{".", "./blob", "./blockblob", "./container", "./service"}, run: ".",
		prepare: prepareAzblob,
		environ: func(connection string) []string {
			return []string{
				"AZURE_RECORD_MODE=live", "AZURE_STORAGE_ACCOUNT_NAME=" + partOf(connection, "AccountName"),
				"AZURE_STORAGE_ACCOUNT_KEY=" + partOf(connection, "AccountKey"),
			}
		},
	},
}

func main() {
	page := flag.String("page", "", "write the figures into the table of `FILE`")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "conformance-blob: want the program to test")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runSuites(ctx, flag.Arg(0), flag.Args()[1:], *page); err != nil {
		fmt.Fprintln(os.Stderr, "conformance-blob:", err)
		stop()
		os.Exit(1) //nolint:gocritic // no deferred call is lost
	}
}

func runSuites(ctx context.Context, program string, only []string, page string) error {
	for _, s := range suites {
		if len(only) > 0 && !slices.ContainsFunc(only, func(name string) bool { return strings.HasPrefix(s.name, name) }) {
			continue
		}
		passed, failed, err := runSuite(ctx, program, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, name := range failed {
			fmt.Println("FAIL", name)
		}
		figure := fmt.Sprintf("%d of %d", passed, passed+len(failed))
		fmt.Printf("%s: %s\n", s.name, figure)
		if page == "" {
			continue
		}
		if err := writeFigure(page, s.name, figure); err != nil {
			return err
		}
	}
	return nil
}

func runSuite(ctx context.Context, program string, s suite) (passed int, failed []string, err error) {
	dir, err := os.MkdirTemp("", "conformance-blob-")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	connection, stop, err := startEmulator(ctx, program, filepath.Join(dir, "account"))
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	copied := filepath.Join(dir, "module")
	if err := copyModule(ctx, s.module, copied); err != nil {
		return 0, nil, err
	}
	if err := s.prepare(copied, connection); err != nil {
		return 0, nil, err
	}
	arguments := []string{"test", "-json", "-vet=off", "-mod=mod", "-count=1", "-timeout=20m", "-p=1", "-run=" + s.run}
	tests := exec.CommandContext(ctx, "go", append(arguments, s.packages...)...)
	tests.Dir = copied
	tests.Env = append(append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off"), s.environ(connection)...)
	tests.Stderr = os.Stderr
	out, err := tests.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := tests.Start(); err != nil {
		return 0, nil, err
	}
	passed, failed, err = countTests(out)
	_ = tests.Wait() // Wait returns an error if a test fails; failed tests are counted
	if err == nil && passed+len(failed) == 0 {
		err = errors.New("no test ran")
	}
	return passed, failed, err
}

// startEmulator starts an emulator with its data in a folder, on a free port. stop ends it.
func startEmulator(ctx context.Context, program, dir string) (connection string, stop func() error, err error) {
	emulator := exec.CommandContext(ctx, program, "emulator", "blob", "--data", dir, "--listen", "127.0.0.1:0") //nolint:gosec // the program to test
	emulator.Stderr = io.Discard
	out, err := emulator.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := emulator.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		return errors.Join(emulator.Process.Signal(syscall.SIGTERM), emulator.Wait())
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, connection, found := strings.Cut(strings.TrimSpace(line), "connection string ")
	if err != nil || !found {
		return "", nil, errors.Join(fmt.Errorf("the emulator printed no connection string: %q", line), err, stop())
	}
	return connection, stop, nil
}

// partOf returns a value in a connection string.
func partOf(connection, name string) string {
	for part := range strings.SplitSeq(connection, ";") {
		if value, ok := strings.CutPrefix(part, name+"="); ok {
			return value
		}
	}
	return ""
}

// copyModule copies a module from the cache, where it is read-only.
func copyModule(ctx context.Context, module, to string) error {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module) //nolint:gosec // one of suites
	download.Stderr = os.Stderr
	out, err := download.Output()
	if err != nil {
		return fmt.Errorf("find %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(found.Dir))
}

var (
	joinedURL    = regexp.MustCompile(`"https://"\s*\+\s*([\w.()]+)\s*\+\s*"\.blob\.core\.windows\.net/?"`)
	formattedURL = regexp.MustCompile(`"https://%s\.blob\.core\.windows\.net/`)
)

// proxyCalls removes the calls of the proxy that records the tests of azblob. The live tests do not
// use that proxy, and its code is not in the module.
var proxyCalls = strings.NewReplacer(
	"proxy, err := recording.StartTestProxy(RecordingDirectory, nil)", "var proxy *recording.TestProxyInstance\n\tvar err error",
	"err := recording.StopTestProxy(proxy)", "var err error",
)

// prepareAzblob replaces the URLs of accounts in the tests by URLs of the emulator, and removes the
// calls of the recording proxy.
func prepareAzblob(dir, connection string) error {
	endpoint, _, _ := strings.Cut(partOf(connection, "BlobEndpoint"), "/"+partOf(connection, "AccountName"))
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		isTest := strings.HasSuffix(path, "client_test.go") || strings.Contains(path, "testcommon")
		if !isTest || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = joinedURL.ReplaceAll(text, []byte(`"`+endpoint+`/" + $1 + "/"`))
		text = formattedURL.ReplaceAll(text, []byte(`"`+endpoint+`/%s/`))
		return os.WriteFile(path, []byte(proxyCalls.Replace(string(text))), 0o600)
	})
}

// countTests counts the results in the output of `go test -json`.
func countTests(out io.Reader) (passed int, failed []string, err error) {
	result := map[string]string{}
	parents := map[string]bool{}
	lines := bufio.NewReader(out)
	for {
		line, readErr := lines.ReadBytes('\n')
		var event struct{ Action, Package, Test string }
		if len(bytes.TrimSpace(line)) > 0 {
			if err := json.Unmarshal(line, &event); err != nil {
				return 0, nil, fmt.Errorf("read %.100q: %w", line, err)
			}
		}
		if event.Test != "" {
			name := event.Package + " " + event.Test
			switch event.Action {
			case "run":
				result[name] = "fail" // unless a later line has another result
				for at := strings.LastIndexByte(name, '/'); at > len(event.Package); at = strings.LastIndexByte(name[:at], '/') {
					parents[name[:at]] = true
				}
			case "pass", "fail", "skip":
				result[name] = event.Action
			}
		}
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			return 0, nil, readErr
		}
	}
	for name, action := range result {
		switch {
		case parents[name]:
		case action == "pass":
			passed++
		case action == "fail":
			failed = append(failed, name)
		}
	}
	slices.Sort(failed)
	return passed, failed, nil
}

// writeFigure replaces the figure in the row of a suite, which is its last
// column.
func writeFigure(page, name, figure string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	row := regexp.MustCompile(`(?m)^(\| ` + regexp.QuoteMeta(name) + `[^|]*\|[^|]*\|)[^|\n]*\|`)
	if !row.Match(text) {
		return fmt.Errorf("%s has no row that begins with %q", page, name)
	}
	return os.WriteFile(page, row.ReplaceAll(text, []byte("${1} "+figure+" |")), 0o600)
}
