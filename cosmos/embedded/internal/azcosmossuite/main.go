// Command azcosmossuite runs the emulator tests of azcosmos against the engine, over HTTPS, and
// prints the number of passed tests. go.mod pins the version of azcosmos.
//
// Microsoft runs the same tests against its emulator. They connect to
// https://localhost:8081/ and, for ids that only the dedicated gateway supports, to
// https://localhost:8903/. The module is copied out of the module cache, which is read-only,
// and tested without changes.
//
// The exit status is 0 if all tests passed. Arguments, if any, are the names
// of the tests to run.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
)

const module = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, failed, err := runTests(ctx, os.Args[1:])
	for _, name := range failed {
		fmt.Println("FAIL", name)
	}
	fmt.Printf("azcosmos emulator tests: %d of %d passed\n", passed, passed+len(failed))
	if err != nil {
		fmt.Fprintln(os.Stderr, "azcosmossuite:", err)
	}
	if err != nil || len(failed) > 0 || passed == 0 {
		stop()
		os.Exit(1) //nolint:gocritic // no deferred call is lost
	}
}

func runTests(ctx context.Context, only []string) (passed int, failed []string, err error) {
	dir, err := os.MkdirTemp("", "azcosmossuite-")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	suite, err := compileSuite(ctx, dir)
	if err != nil {
		return 0, nil, err
	}
	names, err := findEmulatorTests(filepath.Join(dir, "azcosmos"))
	if err != nil {
		return 0, nil, err
	}
	if len(only) > 0 {
		names = only
	}
	trust, stop, err := serveAccount(ctx, dir)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return runSuite(ctx, suite, trust, names)
}

// compileSuite copies the module and compiles its tests. It must run before the process trusts only the emulator's
// certificate, because the go command could then not reach its proxy.
func compileSuite(ctx context.Context, dir string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Stderr = os.Stderr
	found, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", module, err)
	}
	copied := filepath.Join(dir, "azcosmos")
	if err := os.CopyFS(copied, os.DirFS(strings.TrimSpace(string(found)))); err != nil {
		return "", err
	}
	suite := filepath.Join(dir, "suite.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-mod=mod", "-o", suite, ".") //nolint:gosec // our own temporary folder
	build.Dir = copied
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return suite, build.Run()
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// findEmulatorTests finds the tests that need an emulator.
func findEmulatorTests(module string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(module, "emulator_cosmos_*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	return names, nil
}

// serveAccount serves an account on two listeners. It returns the file of the certificate to trust, and a function that
// stops the account.
func serveAccount(ctx context.Context, dir string) (trust string, stop func() error, err error) {
	cert, err := certificate.Load(dir, "localhost", "127.0.0.1")
	if err != nil {
		return "", nil, err
	}
	engine, err := embedded.Open(embedded.Options{Dir: filepath.Join(dir, "account")}) //nolint:contextcheck // opening must not be interrupted
	if err != nil {
		return "", nil, err
	}
	var servers []*http.Server
	stop = func() error {
		var errs []error
		for _, server := range servers {
			errs = append(errs, server.Close())
		}
		return errors.Join(append(errs, engine.Close())...)
	}
	for _, endpoint := range []struct {
		address string
		embedded.EndpointOptions
	}{
		// Azure's emulator advertises 127.0.0.1 in place of localhost.
		{"127.0.0.1:8081", embedded.EndpointOptions{Gateway: embedded.Routing, Advertise: "127.0.0.1:8081"}},
		{"127.0.0.1:8903", embedded.EndpointOptions{Gateway: embedded.Compute, Advertise: "127.0.0.1:8903"}},
	} {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", endpoint.address)
		if err != nil {
			return "", nil, errors.Join(err, stop())
		}
		server := &http.Server{Handler: engine.HandlerOf(endpoint.EndpointOptions), TLSConfig: cert.Config(), ReadHeaderTimeout: time.Minute}
		servers = append(servers, server)
		go func() { _ = server.ServeTLS(listener, "", "") }() // the goroutine ends when the server is closed
	}
	return filepath.Join(dir, certificate.FileName), stop, nil
}

// runSuite runs the tests one by one in a child process.
func runSuite(ctx context.Context, suite, trust string, names []string) (passed int, failed []string, err error) {
	cmd := exec.CommandContext(ctx, suite, "-test.v", "-test.run", "^("+strings.Join(names, "|")+")$") //nolint:gosec // built by compileSuite
	cmd.Dir = filepath.Join(filepath.Dir(suite), "azcosmos")
	cmd.Env = append(os.Environ(), "EMULATOR=true", "SSL_CERT_FILE="+trust)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	done := map[string]bool{}
	lines := bufio.NewReader(out)
	var output []string // output of the current test, which is printed only if the test fails
	for {
		line, readErr := lines.ReadString('\n')
		name, passes := strings.CutPrefix(line, "--- PASS: ")
		switch {
		case passes:
			name, _, _ = strings.Cut(name, " ")
			done[name] = true
			passed++
		case strings.HasPrefix(line, "--- FAIL: "):
			fmt.Print(line, strings.Join(output, ""))
		}
		if output = append(output, line); strings.HasPrefix(line, "=== RUN") && !strings.Contains(line, "/") {
			output = nil
		}
		if readErr != nil {
			if !errors.Is(readErr, io.EOF) {
				err = readErr
			}
			break
		}
	}
	if exit := cmd.Wait(); exit != nil && err == nil {
		err = fmt.Errorf("the tests: %w", exit)
	}
	for _, name := range names {
		if !done[name] {
			failed = append(failed, name)
		}
	}
	return passed, failed, err
}
