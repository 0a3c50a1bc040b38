package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A suite is the tests of one package of a Go module.
type suite struct {
	id, name string
	module   string
	folder   string                    // folder of the package, relative to the module
	prepare  func(copied string) error // prepare modifies the copy of the module, in folder copied
	wanted   func(test string) bool

	emulator []string // flags
	environ  func(trust string) []string

	known map[string]string // reasons why tests cannot pass, by test name
}

const azservicebus = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

var suites = []*suite{
	{
		id: "root", name: "azservicebus live tests", module: azservicebus, folder: ".",
		prepare: localCredential, emulator: live, environ: liveEnvironment,
	},
	{
		id: "internal", name: "azservicebus/internal live tests", module: azservicebus, folder: "internal",
		prepare: localCredential, emulator: live, environ: liveEnvironment,
	},
	{
		id: "admin", name: "azservicebus/admin live tests", module: azservicebus, folder: "admin",
		prepare: localCredential, emulator: live, environ: liveEnvironment, known: adminGaps,
	},
	{
		id: "amqp", name: "go-amqp integration tests", module: "github.com/Azure/go-amqp", folder: ".",
		emulator: []string{"--listen", "127.0.0.1:5672", "--anonymous", "--create-on-use"},
		environ:  func(string) []string { return []string{"AMQP_BROKER_ADDR=amqp://127.0.0.1:5672"} },
		wanted:   isIntegrationTest,
	},
}

// localhost is the address of localhost in the isolated networks.
const localhost = "127.0.0.2"

// secret is the key that the live tests use. Their file test-resources.bicep defines the resources for the tests.
const secret = "c2VjcmV0IG9mIHRoZSBsaXZlIHRlc3Rz" //nolint:gosec // a key of an emulator in an isolated network

var live = []string{
	"--listen", localhost + ":5671", "--listen", localhost + ":443", "--tls", "--trust-tokens", "--key", secret,
	"--add-key", "NoManage=" + secret + ":send+listen", "--add-key", "SendOnly=" + secret + ":send", "--add-key", "ListenOnly=" + secret + ":listen",
}

// liveEntities are the entities that the live tests expect to exist.
const liveEntities = `{"Queues": [
	{"Name": "testQueue", "Properties": {"LockDuration": "PT5M"}},
	{"Name": "testQueueWithSessions", "Properties": {"LockDuration": "PT5M", "RequiresSession": true}}]}`

func liveEnvironment(trust string) []string {
	connection := func(key string) string {
		return "Endpoint=sb://localhost/;SharedAccessKeyName=" + key + ";SharedAccessKey=" + secret
	}
	return []string{
		"AZURE_RECORD_MODE=live", "SSL_CERT_FILE=" + trust,
		"SERVICEBUS_ENDPOINT=localhost", "SERVICEBUS_ENDPOINT_PREMIUM=localhost",
		"SERVICEBUS_CONNECTION_STRING=" + connection("RootManageSharedAccessKey"),
		"SERVICEBUS_CONNECTION_STRING_PREMIUM=" + connection("RootManageSharedAccessKey"),
		"SERVICEBUS_CONNECTION_STRING_NO_MANAGE=" + connection("NoManage"),
		"SERVICEBUS_CONNECTION_STRING_SEND_ONLY=" + connection("SendOnly"),
		"SERVICEBUS_CONNECTION_STRING_LISTEN_ONLY=" + connection("ListenOnly"),
	}
}

// localCredential makes the tests use the fake credential of the client library, because it does not contact Azure.
func localCredential(copied string) error {
	file := filepath.Join(copied, "internal", "test", "test_helpers.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	patched := bytes.Replace(text, []byte("credential.New(nil)"), []byte("&credential.Fake{}, error(nil)"), 1)
	if bytes.Equal(patched, text) {
		return errors.New("the line that creates a credential was not found in internal/test/test_helpers.go")
	}
	return os.WriteFile(file, patched, 0o600) //nolint:gosec // a copy of this program
}

// adminGaps names, for each test that cannot pass, the settings that the emulator does not support.
var adminGaps = map[string]string{
	"TestAdminClient_QueueWithMaxValues":            "deleting idle entities, rules of access to one entity, partitions",
	"TestAdminClient_CreateQueue_Standard":          "deleting idle entities, partitions",
	"TestAdminClient_CreateQueue_Premium":           "deleting idle entities",
	"TestAdminClient_UpdateQueue":                   "rules of access to one entity",
	"TestAdminClient_TopicAndSubscription_Standard": "deleting idle entities, partitions",
	"TestAdminClient_TopicAndSubscription_Premium":  "deleting idle entities",
	"TestAdminClient_UpdateTopic":                   "deleting idle entities, rules of access to one entity",
	"TestAdminClient_Forwarding":                    "the scheme of a forwarding URL, which is answered as https",
}

// isIntegrationTest reports whether a test is in integration_test.go. The remaining tests need no broker.
func isIntegrationTest(test string) bool {
	switch test {
	case "TestMultipleSessionsOpenClose", "TestDialWithCancelledContext", "TestNewSessionWithCancelledContext",
		"TestConcurrentSessionsOpenClose", "TestReceiverModeFirst", "TestSenderExactlyOnce", "TestReceivingLotsOfSettledMessages",
		"TestNewReceiverWithCancelledContext", "TestMultipleSendersSharedSession", "TestDrainingLink", "TestSenderNullValue":
		return true
	}
	return strings.HasPrefix(test, "TestIntegration")
}

// compileTests copies the module, compiles the tests of the package, and returns the test names.
func (s *suite) compileTests(ctx context.Context, dir string) (binary string, names []string, err error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", s.module) //nolint:gosec // constants of this file
	list.Stderr = os.Stderr
	found, err := list.Output()
	if err != nil {
		return "", nil, fmt.Errorf("find %s: %w", s.module, err)
	}
	copied := filepath.Join(dir, s.id)
	if err := copyModule(copied, strings.TrimSpace(string(found))); err != nil {
		return "", nil, err
	}
	if s.prepare != nil {
		if err := s.prepare(copied); err != nil {
			return "", nil, err
		}
	}
	folder := filepath.Join(copied, s.folder)
	binary = filepath.Join(folder, "suite.test")
	build := newCommand(ctx, folder, "go", "test", "-c", "-vet=off", "-mod=mod", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if err := build.Run(); err != nil {
		return "", nil, fmt.Errorf("build the tests: %w", err)
	}
	all := exec.CommandContext(ctx, binary, "-test.list", "^Test")
	all.Dir, all.Stderr = folder, os.Stderr
	all.Env = append(os.Environ(), s.environ("")...)
	text, err := all.Output()
	if err != nil {
		return "", nil, fmt.Errorf("list the tests: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Test") && (s.wanted == nil || s.wanted(name)) {
			names = append(names, name)
		}
	}
	return binary, names, nil
}

// copyModule copies a folder of the module cache and makes the copy writable.
func copyModule(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder of this program
		}
		return os.Chmod(path, 0o600) //nolint:gosec // a folder of this program
	})
}
