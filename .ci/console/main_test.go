// Package console tests the pages for operators in a browser, with the released
// program.
package console

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const adminToken = "token-of-the-operators"

// Programs and files, which .ci/test-console passes as variables.
var (
	program  = os.Getenv("HUB_PROGRAM") // the program messagehub
	chromium = os.Getenv("CHROMIUM")
	axe      = os.Getenv("AXE")         // path of axe.min.js; "" skips the checks with axe
	pictures = os.Getenv("SCREENSHOTS") // folder for screenshots; "" means no screenshots
)

func TestMain(m *testing.M) {
	if program == "" || chromium == "" {
		fmt.Println("console: not tested: run make test-console")
		return
	}
	os.Exit(m.Run())
}

// A server is a hub that runs until its test ends.
type server struct {
	url string // URL for operators and clients
	bus string // address of its Service Bus
}

// addressPatterns match the lines in which a hub prints its addresses, in their
// order.
var addressPatterns = []*regexp.Regexp{
	regexp.MustCompile(`listens on (http://\S+)`),
	regexp.MustCompile(`over Service Bus at ([^\s;]+)`),
}

// startHub starts a hub with an empty data folder.
func startHub(t *testing.T, arguments ...string) *server {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, append([]string{
		"serve", "--in-memory", "--listen", "127.0.0.1:0", "--admin-listen", "", "--bus-listen", "127.0.0.1:0", "--blob-listen", "",
	}, arguments...)...)
	command.Env = append(os.Environ(), "MESSAGEHUB_ADMIN_TOKEN="+adminToken)
	command.Dir = t.TempDir()
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout = command.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, len(addressPatterns))
	ended := make(chan struct{})
	var log strings.Builder
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		patterns := addressPatterns
		for lines.Scan() {
			log.WriteString(lines.Text() + "\n")
			if len(patterns) == 0 {
				continue
			}
			if match := patterns[0].FindStringSubmatch(lines.Text()); match != nil {
				found <- match[1]
				patterns = patterns[1:]
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = command.Wait()
		if t.Failed() {
			text := log.String()
			t.Logf("the end of the hub's log:\n%s", text[max(0, len(text)-2000):])
		}
	})
	s := &server{}
	for _, address := range []*string{&s.url, &s.bus} {
		select {
		case *address = <-found:
		case <-ended:
			t.Fatalf("the hub ended:\n%s", log.String())
		case <-time.After(30 * time.Second):
			t.Fatal("the hub does not listen after 30 s")
		}
	}
	return s
}

// runCommand runs a command of the program against the hub, and returns its
// output.
func (s *server) runCommand(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, append(arguments, "--url", s.url)...)
	command.Env = append(os.Environ(), "MESSAGEHUB_ADMIN_TOKEN="+adminToken)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

// savePicture writes a screenshot.
func savePicture(t *testing.T, name string, png []byte) {
	t.Helper()
	if pictures == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(pictures, name+".png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
}
